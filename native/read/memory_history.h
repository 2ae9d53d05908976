// memory_history.h: what happened to the blocks that an address was in.
//
// Threads: a query belongs to one. Allocates: as a Replay, and for each event that it finds, up to
// a budget; what does not fit is counted. Fails by: Next; std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "read/memory_query.h"

namespace whence::read {

class MemoryHistory : public MemoryQuery {
 public:
  // Of an address of the process, or of a pool.
  MemoryHistory(const Source& source, const Timeline& timeline, Slice slice, std::uint64_t address,
                std::optional<std::uint64_t> pool);

  // Of what is freed, domain and size are those of its block, and its address is where that begins.
  [[nodiscard]] const std::vector<MemoryEvent>& events() const noexcept { return events_; }
  // Events for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return budget_.refused(); }

 protected:
  [[nodiscard]] bool take(const Change& change) override;

 private:
  std::uint64_t address_;
  std::optional<std::uint64_t> domain_;  // of the pool
  Budget budget_;
  std::vector<MemoryEvent> events_;
};

}  // namespace whence::read
