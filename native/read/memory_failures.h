// memory_failures.h: who asked for memory in vain.
//
// Threads: a query belongs to one. Allocates: as a Replay, and for each of them, up to a budget;
// what does not fit is counted. Fails by: Next; std::bad_alloc.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "read/memory_query.h"

namespace whence::read {

class MemoryFailures : public MemoryQuery {
 public:
  MemoryFailures(const Source& source, const Timeline& timeline, Slice slice)
      : MemoryQuery(source, timeline, std::move(slice)),
        budget_(kLeastBudget, source.input().size()) {}

  [[nodiscard]] const std::vector<MemoryEvent>& events() const noexcept { return events_; }
  // Events for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return budget_.refused(); }

 protected:
  [[nodiscard]] bool take(const Change& change) override {
    const MemoryEvent& event = change.event;
    if (event.action != MemoryEvent::Action::out_of_memory) return true;
    if (!slice().has_thread(event.thread)) return true;
    if (budget_.afford(2 * sizeof event)) events_.push_back(event);
    return true;
  }

 private:
  static constexpr std::uint64_t kLeastBudget = 64u << 20;

  Budget budget_;
  std::vector<MemoryEvent> events_;
};

}  // namespace whence::read
