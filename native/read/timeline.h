// timeline.h: ticks of the recorder's clock as nanoseconds since the recording began, or since the
// one that it was merged with began.
//
// Threads: any, once made. Allocates: 16 bytes a pair of readings, two or fewer a chunk.
// Fails by: std::bad_alloc. Any ticks give a time, and later ticks never an earlier one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "read/source.h"

namespace whence::read {

class Timeline {
 public:
  Timeline() = default;
  explicit Timeline(const Source& source);

  [[nodiscard]] std::int64_t at(std::uint64_t ticks) const noexcept;
  // The same without the shift: since this very recording began.
  [[nodiscard]] std::int64_t since_start(std::uint64_t ticks) const noexcept;

  // A stretch between two pairs, kept by one who asks for times that are mostly in order.
  struct Stretch {
    std::uint64_t begin = 0, end = 0;  // ticks: [begin, end)
    std::uint64_t ticks = 1, nanoseconds = 0;
    std::int64_t at_begin = 0;
    double per_tick = 1;  // 1 / ticks
  };
  static constexpr std::int64_t kExact = std::int64_t{1} << 50;
  [[nodiscard]] std::int64_t at(std::uint64_t ticks, Stretch& stretch) const noexcept {
    const std::uint64_t since = ticks - stretch.begin;
    std::int64_t product;
    if (ticks < stretch.begin || ticks >= stretch.end ||
        __builtin_mul_overflow(since, stretch.nanoseconds, &product)) [[unlikely]] {
      return at_elsewhere(ticks, stretch);
    }
    // A division would take longer than all the rest. As long as the quotient has fewer bits than a
    // double, a product with the inverse is off by one at most, and what is left says by which.
    const auto guess = static_cast<std::int64_t>(static_cast<double>(product) * stretch.per_tick);
    if (guess >= kExact) [[unlikely]]
      return at_elsewhere(ticks, stretch);
    const auto left = static_cast<std::int64_t>(static_cast<std::uint64_t>(product) -
                                                static_cast<std::uint64_t>(guess) * stretch.ticks);
    return stretch.at_begin + guess + (left >= static_cast<std::int64_t>(stretch.ticks)) -
           (left < 0);
  }
  // How long `duration` ticks were that ended at `end`.
  [[nodiscard]] std::int64_t lasted(std::uint64_t end, std::uint64_t duration) const noexcept;
  // The first ticks that are not before this time.
  [[nodiscard]] std::uint64_t ticks_at(std::int64_t time) const noexcept;
  // The reading of the monotonic clock at these ticks.
  [[nodiscard]] std::uint64_t monotonic_at(std::uint64_t ticks) const noexcept;

 private:
  [[nodiscard]] std::size_t after(std::uint64_t ticks) const noexcept;
  [[nodiscard]] std::uint64_t monotonic_before(std::uint64_t ticks,
                                               std::size_t next) const noexcept;
  [[nodiscard]] std::int64_t distance(std::uint64_t monotonic) const noexcept;
  [[nodiscard]] std::int64_t time_of(std::uint64_t monotonic) const noexcept;
  [[nodiscard]] std::int64_t at_elsewhere(std::uint64_t ticks, Stretch& stretch) const noexcept;

  std::vector<base::ClockPair> pairs_;  // both readings rise; at least one pair
  base::ClockPair rate_{1, 1};          // so many ticks in so many nanoseconds, beyond the pairs
  std::uint64_t start_ = 0;             // nanoseconds, and
  std::int64_t shift_ = 0;              // the time then
};

}  // namespace whence::read
