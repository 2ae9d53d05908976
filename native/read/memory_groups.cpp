// memory_groups.cpp: see memory_groups.h.
#include "read/memory_groups.h"

#include <algorithm>

namespace whence::read {
namespace {

using What = Change::What;

// All from the beginning, and nothing after `until`.
Slice up_to(Slice slice, std::int64_t until) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  slice.from = std::numeric_limits<std::int64_t>::min();
  if (until != kNever) slice.to = std::min(slice.to, until + 1);
  return slice;
}

}  // namespace

LiveGroups::LiveGroups(const Source& source, const Timeline& timeline, Slice slice, Wanted wanted)
    : MemoryQuery(source, timeline, up_to(std::move(slice), wanted.until)), wanted_(wanted) {}

void LiveGroups::finish() {
  MemorySums sums;
  replay().for_each_live([&](const Block& block) {
    if (block.time >= wanted_.from && block.time < wanted_.to && is_wanted(block)) sums.add(block);
  });
  groups_ = sums.groups(replay().origins());
}

// Where a block has ended because its place was taken, nobody knows when that was.
bool Churn::take(const Change& change) {
  if (change.event.takes() || !change.of_block()) return true;
  if (change.further >= within_ || !is_wanted(change.block)) return true;
  if (change.what == What::ended) {
    sums_.add(change.block);
  } else if (change.is_rest) {
    // Its mapping has been added as a whole. Of that only a part is gone, which counts as one.
    sums_.subtract_bytes(change.block);
  } else if (change.ended >= slice().from) {
    // A realloc that failed. Where the slice begins within it, the block was never added.
    sums_.subtract(change.block);
  }
  return true;
}

}  // namespace whence::read
