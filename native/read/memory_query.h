// memory_query.h: a question about memory that a replay of its events answers.
//
// Threads: a query belongs to one. Allocates: as a Replay. Fails by: Next; std::bad_alloc.
//
// A slice is about blocks that its threads took, and about what happens between its times: what was
// in use when it begins is part of it, so everything before is replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "read/replay.h"
#include "read/slice.h"

namespace whence::read {

struct MemoryGroup {
  Origin origin;
  std::uint64_t bytes = 0, count = 0;
};

class MemoryQuery {
 public:
  // All but the slice outlive it.
  MemoryQuery(const Source& source, const Timeline& timeline, Slice slice)
      : replay_(source, timeline, slice.to, slice.deadline), slice_(std::move(slice)) {}
  virtual ~MemoryQuery() = default;
  MemoryQuery(const MemoryQuery&) = delete;
  MemoryQuery& operator=(const MemoryQuery&) = delete;

  // Reads on for some milliseconds, so that there is time for signals. record: there is more to
  // read; end: the answer is there.
  [[nodiscard]] Next advance();

  [[nodiscard]] const Replay& replay() const noexcept { return replay_; }

 protected:
  // What has changed before the slice begins, and in it; false: that was all that was needed.
  virtual void before(const Change&) {}
  [[nodiscard]] virtual bool take(const Change& change) = 0;
  // The slice begins, if it has a beginning. Called before the first change in it, or at the end.
  virtual void begin() {}
  virtual void finish() {}

  [[nodiscard]] bool is_wanted(const Block& block) const noexcept {
    return slice_.all_threads || slice_.has_thread(replay_.origins()[block.origin].thread);
  }
  [[nodiscard]] const Slice& slice() const noexcept { return slice_; }
  // As of the replay: what does not fit is counted there.
  [[nodiscard]] bool afford(std::uint64_t bytes) noexcept { return replay_.afford(bytes); }

 private:
  void enter() {
    begun_ = true;
    if (slice_.from != std::numeric_limits<std::int64_t>::min()) begin();
  }

  Replay replay_;
  Slice slice_;
  bool begun_ = false, over_ = false;
};

// Bytes and blocks by origin.
class MemorySums {
 public:
  void add(const Block& block) {
    MemoryGroup& sum = at(block.origin);
    sum.bytes += block.size;
    ++sum.count;
  }
  // What was added before, or a part of its bytes.
  void subtract(const Block& block) {
    subtract_bytes(block);
    --at(block.origin).count;
  }
  void subtract_bytes(const Block& block) { at(block.origin).bytes -= block.size; }
  // Those that have blocks, in the order in which they were met.
  [[nodiscard]] std::vector<MemoryGroup> groups(const Origins& origins) const;

 private:
  [[nodiscard]] MemoryGroup& at(std::uint32_t origin) {
    if (origin >= sums_.size()) sums_.resize(std::size_t{origin} + 1);
    return sums_[origin];
  }

  std::vector<MemoryGroup> sums_;
};

}  // namespace whence::read
