// memory_state.cpp: see memory_state.h.
#include "probes/memory_state.h"

#include <algorithm>

#include "base/ours.h"
#include "format/records/in_use.h"
#include "probes/blocks_in_use.h"
#include "probes/memory.h"
#include "store/write.h"

namespace whence::probes {
namespace {

// All have the time of the state, as far as chunks allow it.
template <class R>
void write_block(std::uint32_t recording, std::uint64_t time, const BlockInUse& block) noexcept {
  store::write_with<R>(recording, [&](store::Cursor& cursor, std::uint64_t) {
    return R::encode(cursor.next(), cursor.deltas, std::max(time, cursor.deltas.time),
                     std::uint64_t{block.thread}, block.address, block.size,
                     std::uint64_t{block.stack}, block.time);
  });
}

}  // namespace

bool write_memory_state(std::uint32_t recording) noexcept {
  using format::Domain;
  const base::Ours ours;
  const std::uint64_t time =
      store::write<format::MemoryState>(recording, std::uint64_t{blocks_in_use().size()});
  const store::Store::Spot begin = store::store().this_spot();
  const std::size_t left_out = blocks_in_use().for_each([&](const BlockInUse& block) {
    switch (static_cast<Domain>(block.domain)) {
      case Domain::raw: return write_block<format::RawInUse>(recording, time, block);
      case Domain::mem: return write_block<format::MemInUse>(recording, time, block);
      case Domain::obj: return write_block<format::ObjInUse>(recording, time, block);
      case Domain::malloc: return write_block<format::MallocInUse>(recording, time, block);
      case Domain::mmap: return write_block<format::MmapInUse>(recording, time, block);
    }
  });
  detail::memory_options.blocks_lost += left_out;
  return store::store().is_there(begin);
}

}  // namespace whence::probes
