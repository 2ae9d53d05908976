// newest_events.h: the last events of memory, as many as there is room for.
//
// Threads: a query belongs to one. Allocates: as a Replay, and 56 bytes an event that it keeps.
// Fails by: Next; std::bad_alloc.
//
// They fit together: what is taken is freed before its place is taken again, and what is freed was
// taken. So frees of blocks from before the recording are not among them; a block that ends because
// its place is taken is freed then; one that was not freed after all is taken again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "read/memory_query.h"

namespace whence::read {

// Numbers of 64 bits, without gaps: it is handed to Python as it is.
struct EventRow {
  std::uint64_t action;  // of MemoryEvent: taken or freed, also of segments; or out_of_memory
  std::int64_t time;
  std::uint64_t thread, domain, address, size, stack;
};
static_assert(sizeof(EventRow) == 7 * sizeof(std::uint64_t));

class NewestEvents : public MemoryQuery {
 public:
  NewestEvents(const Source& source, const Timeline& timeline, Slice slice, std::size_t most)
      : MemoryQuery(source, timeline, std::move(slice)), most_(most) {}

  // In the end: in the order of time.
  [[nodiscard]] const std::vector<EventRow>& events() const noexcept { return events_; }
  // Earlier ones, for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return seen_ - events_.size(); }

 protected:
  [[nodiscard]] bool take(const Change& change) override;
  void finish() override;

 private:
  void add(const EventRow& event);

  std::size_t most_;
  std::vector<EventRow> events_;  // once full, a ring
  std::uint64_t seen_ = 0;
};

}  // namespace whence::read
