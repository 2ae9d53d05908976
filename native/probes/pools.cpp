// pools.cpp: see pools.h.
#include "probes/pools.h"

#include <array>
#include <atomic>

#include "format/records/pool.h"
#include "probes/memory.h"

namespace whence::probes {
namespace {

constexpr std::size_t kMostPools = 1024;

// Filled from the beginning, without a lock: whoever comes first has the place.
struct Entry {
  std::atomic<std::uint32_t> name = 0;     // what base::names() calls it, and one more; 0: free
  std::atomic<std::uint32_t> written = 0;  // the recording that has the name
};
constinit std::array<Entry, kMostPools> pools;

[[nodiscard]] Entry* entry_of(Pool pool) noexcept {
  const std::size_t place = pool - format::kFirstPool;
  if (pool < format::kFirstPool || place >= kMostPools) return nullptr;
  return pools[place].name.load(std::memory_order_relaxed) != 0 ? &pools[place] : nullptr;
}

// Two threads may both do so: that does no harm.
[[gnu::cold, gnu::noinline]] void write_name(std::uint32_t recording, Pool pool,
                                             Entry& entry) noexcept {
  store::Store& store = store::store();
  const std::uint64_t name = store.string(recording, entry.name.load() - 1);
  store.write_metadata(format::kLongestCompact, [&](std::uint8_t* out, format::Deltas&) {
    return format::PoolName::encode(out, pool, name);
  });
  entry.written.store(recording, std::memory_order_release);
}

enum class Tells { taken, given };

template <class R, Tells kTells, class... Values>
void tell(Pool pool, std::uint32_t event, Values... values) noexcept {
  Entry* entry = entry_of(pool);
  if (entry == nullptr) return;
  const bool both = enter_memory();
  if (!both && !(kTells == Tells::given && enter_giving())) return;
  const std::uint32_t recording = detail::memory_options.recording.load(std::memory_order_relaxed);
  if (recording != 0 && detail::wanted(event)) {
    if (entry->written.load(std::memory_order_acquire) != recording) [[unlikely]]
      write_name(recording, pool, *entry);
    stacks::StackId stack = stacks::kEmpty;
    if (kTells == Tells::taken || detail::detail_now() == Detail::full) {
      stack = detail::memory_stack(recording, cpython::asker(), __builtin_frame_address(0));
    }
    detail::tell_block<R>(recording, false, std::uint64_t{pool}, values..., std::uint64_t{stack});
  }
  both ? leave_memory() : leave_giving();
}

}  // namespace

Pool pool_named(base::BytePool::Ref name) noexcept {
  if (name == base::BytePool::kNone) return 0;
  for (std::size_t place = 0; place < kMostPools; ++place) {
    std::uint32_t found = 0;
    const bool ours = pools[place].name.compare_exchange_strong(found, name + 1);
    if (ours || found == name + 1) return static_cast<Pool>(format::kFirstPool + place);
  }
  return 0;
}

void pool_allocated(Pool pool, std::uint64_t address, std::uint64_t size) noexcept {
  tell<format::PoolAllocated, Tells::taken>(pool, kTaken, address, size);
}

void pool_freed(Pool pool, std::uint64_t address) noexcept {
  tell<format::PoolFreed, Tells::given>(pool, kGiven, address);
}

void segment_allocated(Pool pool, std::uint64_t address, std::uint64_t size) noexcept {
  tell<format::SegmentAllocated, Tells::taken>(pool, kSegments, address, size);
}

void segment_freed(Pool pool, std::uint64_t address) noexcept {
  tell<format::SegmentFreed, Tells::given>(pool, kSegments, address);
}

void pool_out_of_memory(Pool pool, std::uint64_t size, std::uint64_t available) noexcept {
  tell<format::OutOfMemory, Tells::taken>(pool, kOutOfMemory, size, available + 1);
}

}  // namespace whence::probes
