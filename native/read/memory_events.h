// memory_events.h: what happened to memory, in all threads, in the order of time.
//
// Threads: a reader belongs to one. Allocates: as ByTime. Fails by: Next; std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/records/memory.h"
#include "read/by_time.h"
#include "read/timeline.h"

namespace whence::read {

// Who hands out a block: the number of a format::Domain; or this bit, and the number of a pool. A
// pool has addresses of its own, all others share those of the process.
inline constexpr std::uint64_t kPool = std::uint64_t{1} << 63;
[[nodiscard]] constexpr bool is_pool(std::uint64_t domain) noexcept {
  return (domain & kPool) != 0;
}

struct MemoryEvent {
  enum class Action : std::uint8_t {
    taken,
    moved,
    freed,
    not_freed,
    segment_taken,
    segment_freed,
    in_use,  // told by a state
    out_of_memory,
    resident,
    state,   // of all that is in use, which follows
    no_news  // nothing of memory for a while: whoever waits may want to know
  };
  Action action;
  std::uint32_t thread;
  std::int64_t time;            // nanoseconds
  std::uint64_t domain;         // of what is freed: of pools and mappings only
  std::uint64_t address;        // 0 of what has none
  std::uint64_t size;           // in bytes; 0 of what is freed, unless it is a mapping
  std::uint64_t stack;          // 0: not known
  std::uint64_t tags = 0;       // of its thread: a string; 0: none
  std::uint64_t available = 0;  // where memory was out: what there was, and one more; 0: not known
  std::int64_t taken = 0;       // of what takes: when, in nanoseconds

  [[nodiscard]] bool takes() const noexcept {
    return action == Action::taken || action == Action::moved || action == Action::in_use;
  }
  [[nodiscard]] bool is_mapping() const noexcept {
    return domain == static_cast<std::uint64_t>(format::Domain::mmap);
  }
};

class MemoryEvents {
 public:
  // Both outlive it.
  MemoryEvents(const Source& source, const Timeline& timeline, std::uint64_t deadline = kNoDeadline)
      : records_(source, deadline), timeline_(timeline) {}

  // Reads a bounded number of records.
  [[nodiscard]] Next next(MemoryEvent& event);

  [[nodiscard]] std::uint64_t disorder() const noexcept { return records_.disorder(); }
  // If the deadline ended it: all before this time was read.
  [[nodiscard]] std::optional<std::int64_t> read_until() const noexcept {
    const auto ticks = records_.stopped_at();
    return ticks.has_value() ? std::optional(timeline_.at(*ticks)) : std::nullopt;
  }

 private:
  ByTime records_;
  const Timeline& timeline_;
  Timeline::Stretch stretch_;
};

// When memory began to be recorded, and when it was again after each pause, in nanoseconds, sorted.
// nullopt: unpacking asked to stop.
[[nodiscard]] std::optional<std::vector<std::int64_t>> memory_starts(const Source& source,
                                                                     const Timeline& timeline);

}  // namespace whence::read
