// examine.cpp: see examine.h.
#include "read/examine.h"

#include <algorithm>

#include "format/decode.h"

namespace whence::read {

Examined examine(const Chunk& chunk) noexcept {
  Examined found{};
  found.problem = chunk.why;
  format::Decoder decoder(chunk.payload, chunk.header.thread, chunk.header.start_ticks);
  format::Record record;
  std::uint32_t known = 0;
  found.last_ticks = chunk.header.start_ticks;
  format::Step step;
  while ((step = decoder.next(record)) == format::Step::record) {
    ++found.records;
    found.unknown += record.kind == nullptr;
    known += record.kind != nullptr && record.kind->event;
    found.last_ticks = std::max(found.last_ticks, record.time);
  }
  found.good_bytes = static_cast<std::size_t>(decoder.position() - chunk.payload.data());
  const bool cut = step == format::Step::damaged;
  if (cut && found.problem == nullptr) found.problem = "a record cannot be read";

  // A kind that is not known may be an event. Each event takes two bytes at least: a count beyond
  // that is no count.
  constexpr std::uint32_t kShortestEvent = 2;
  const std::uint32_t bytes = format::Committed::from(chunk.header.committed).bytes;
  const std::uint64_t most = std::uint64_t{known} + found.unknown;
  found.events = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(known, std::min<std::uint64_t>(chunk.claimed, most)));
  const bool sensible = chunk.claimed <= bytes / kShortestEvent;
  if (sensible && chunk.claimed > found.events) found.damaged = chunk.claimed - found.events;
  if (found.problem == nullptr && chunk.claimed != found.events) {
    found.problem = "a chunk holds another number of events than it claims";
  }
  return found;
}

}  // namespace whence::read
