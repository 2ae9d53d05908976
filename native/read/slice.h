// slice.h: a part of a recording: a stretch of time, some of the threads, and as much of them as
// can be read until a deadline.
//
// Threads: any, once made. Allocates: 4 bytes a thread. Fails by: std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace whence::read {

inline constexpr std::uint64_t kNoDeadline = std::numeric_limits<std::uint64_t>::max();

struct Slice {
  // Nanoseconds since the recording began; what happens at `to` is no longer in it.
  std::int64_t from = std::numeric_limits<std::int64_t>::min();
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  bool all_threads = true;
  std::vector<std::uint32_t> threads;  // else these
  // Nanoseconds of CLOCK_MONOTONIC, looked at before each chunk: none is begun after it.
  std::uint64_t deadline = kNoDeadline;

  [[nodiscard]] bool has_thread(std::uint64_t id) const noexcept {
    return all_threads || std::find(threads.begin(), threads.end(), id) != threads.end();
  }
};

}  // namespace whence::read
