// newest_events.cpp: see newest_events.h.
#include "read/newest_events.h"

#include <algorithm>

namespace whence::read {
namespace {

using Action = MemoryEvent::Action;
using What = Change::What;

constexpr auto kOutOfMemory = static_cast<std::uint64_t>(Action::out_of_memory);

}  // namespace

void NewestEvents::add(const EventRow& event) {
  if (events_.size() < most_) {
    events_.push_back(event);
  } else if (most_ != 0) {
    events_[seen_ % most_] = event;
  }
  ++seen_;
}

bool NewestEvents::take(const Change& change) {
  const MemoryEvent& event = change.event;
  if (event.action == Action::out_of_memory && slice().has_thread(event.thread)) {
    add({kOutOfMemory, event.time, event.thread, event.domain, 0, event.size, event.stack});
  }
  if (change.what == What::nothing || !is_wanted(change.block)) return true;
  const Origin& origin = replay().origins()[change.block.origin];
  const bool ends = change.what == What::ended;
  // Who took a block is known by its origin; who gave it back is told by the event, if it is one.
  const bool freed = event.action == Action::freed || event.action == Action::segment_freed;
  const auto action = static_cast<std::uint64_t>(
      change.of_segment ? (ends ? Action::segment_freed : Action::segment_taken)
                        : (ends ? Action::freed : Action::taken));
  add({action, event.time, ends ? event.thread : origin.thread, origin.domain, change.block.address,
       change.block.size,
       !ends   ? origin.stack
       : freed ? event.stack
               : 0});
  return true;
}

void NewestEvents::finish() {
  if (most_ == 0 || seen_ <= most_) return;
  const auto oldest = static_cast<std::ptrdiff_t>(seen_ % most_);
  std::rotate(events_.begin(), events_.begin() + oldest, events_.end());
}

}  // namespace whence::read
