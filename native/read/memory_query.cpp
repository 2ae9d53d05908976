// memory_query.cpp: see memory_query.h.
#include "read/memory_query.h"

namespace whence::read {
namespace {

constexpr std::size_t kChangesAtATime = 1 << 16;

}  // namespace

Next MemoryQuery::advance() {
  Change change;
  for (std::size_t i = 0; i < kChangesAtATime && !over_; ++i) {
    const Next next = replay_.next(change);
    if (next == Next::aborted) return next;
    if (next == Next::end) {
      over_ = true;
      break;
    }
    if (change.event.action == MemoryEvent::Action::no_news) return Next::record;
    if (!begun_) {
      if (change.event.time < slice_.from) {
        before(change);
        continue;
      }
      enter();
    }
    over_ = !take(change);
  }
  if (!over_) return Next::record;
  if (!begun_) enter();
  finish();
  return Next::end;
}

std::vector<MemoryGroup> MemorySums::groups(const Origins& origins) const {
  std::vector<MemoryGroup> found;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i].count == 0) continue;
    found.push_back(sums_[i]);
    found.back().origin = origins[static_cast<std::uint32_t>(i)];
  }
  return found;
}

}  // namespace whence::read
