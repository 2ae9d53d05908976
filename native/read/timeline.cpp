// timeline.cpp: see timeline.h. FORMAT.md, "Time", is the rule that this follows.
#include "read/timeline.h"

#include <algorithm>
#include <limits>

namespace whence::read {
namespace {

using base::ClockPair;
__extension__ typedef unsigned __int128 Wide;

constexpr std::uint64_t kShortestBase = 1'000'000;  // nanoseconds

std::uint64_t scale(std::uint64_t ticks, ClockPair rate) noexcept {
  std::uint64_t product;
  if (!__builtin_mul_overflow(ticks, rate.monotonic, &product)) [[likely]]
    return product / rate.ticks;
  const Wide scaled = Wide{ticks} * rate.monotonic / rate.ticks;
  constexpr Wide kMost = std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::min(scaled, kMost));
}

ClockPair between(const ClockPair& a, const ClockPair& b) noexcept {
  return {b.ticks - a.ticks, b.monotonic - a.monotonic};
}

}  // namespace

Timeline::Timeline(const Source& source) {
  const format::FileHeader& file = source.header();
  std::vector<ClockPair> readings = {{file.start_ticks, file.start_monotonic}};
  if (source.closed()) {
    readings.push_back({file.end_ticks, file.end_monotonic});
  }
  for (const Entry& entry : source.entries()) {
    format::ChunkHeader header;
    if (source.input().read(entry.offset, &header, sizeof header) < sizeof header) continue;
    if (!format::opening_is_good(header, source.file_id())) continue;
    readings.push_back({header.start_ticks, header.start_monotonic});
    if (header.state == static_cast<std::uint32_t>(format::ChunkState::sealed) &&
        format::closing_is_good(header)) {
      readings.push_back({header.end_ticks, header.end_monotonic});
    }
  }
  std::sort(readings.begin(), readings.end(), [](const ClockPair& a, const ClockPair& b) {
    return a.ticks != b.ticks ? a.ticks < b.ticks : a.monotonic < b.monotonic;
  });
  for (const ClockPair& pair : readings) {
    if (pairs_.empty() ||
        (pair.ticks > pairs_.back().ticks && pair.monotonic >= pairs_.back().monotonic)) {
      pairs_.push_back(pair);
    }
  }
  start_ = file.start_monotonic;
  shift_ = source.shifts().time;
  const ClockPair whole = between(pairs_.front(), pairs_.back());
  rate_ =
      whole.monotonic >= kShortestBase ? whole : ClockPair{file.ticks_per_second, 1'000'000'000u};
}

// The first pair beyond these ticks.
std::size_t Timeline::after(std::uint64_t ticks) const noexcept {
  const auto found = std::upper_bound(
      pairs_.begin(), pairs_.end(), ticks,
      [](std::uint64_t wanted, const ClockPair& pair) { return wanted < pair.ticks; });
  return static_cast<std::size_t>(found - pairs_.begin());
}

std::uint64_t Timeline::monotonic_at(std::uint64_t ticks) const noexcept {
  return monotonic_before(ticks, after(ticks));
}

std::uint64_t Timeline::monotonic_before(std::uint64_t ticks, std::size_t next) const noexcept {
  if (next == 0) {
    const std::uint64_t before = scale(pairs_.front().ticks - ticks, rate_);
    return pairs_.front().monotonic - std::min(before, pairs_.front().monotonic);
  }
  const ClockPair& left = pairs_[next - 1];
  const std::uint64_t since =
      scale(ticks - left.ticks, next == pairs_.size() ? rate_ : between(left, pairs_[next]));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - left.monotonic;
  return left.monotonic + std::min(since, most);
}

std::uint64_t Timeline::ticks_at(std::int64_t time) const noexcept {
  std::uint64_t first = 0, beyond = std::numeric_limits<std::uint64_t>::max();
  while (first < beyond) {
    const std::uint64_t middle = first + (beyond - first) / 2;
    if (at(middle) < time) {
      first = middle + 1;
    } else {
      beyond = middle;
    }
  }
  return first;
}

std::int64_t Timeline::distance(std::uint64_t monotonic) const noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (monotonic >= start_) return static_cast<std::int64_t>(std::min(monotonic - start_, kMost));
  return -static_cast<std::int64_t>(std::min(start_ - monotonic, kMost));
}

std::int64_t Timeline::time_of(std::uint64_t monotonic) const noexcept {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t time;
  if (__builtin_add_overflow(distance(monotonic), shift_, &time))
    return shift_ > 0 ? kMost : -kMost;
  return std::max(time, -kMost);
}

std::int64_t Timeline::at(std::uint64_t ticks) const noexcept {
  return time_of(monotonic_at(ticks));
}

std::int64_t Timeline::since_start(std::uint64_t ticks) const noexcept {
  return distance(monotonic_at(ticks));
}

// Only between pairs that lie within what can be said: elsewhere times are worked out one by one.
std::int64_t Timeline::at_elsewhere(std::uint64_t ticks, Stretch& stretch) const noexcept {
  const std::size_t next = after(ticks);
  const std::int64_t time = time_of(monotonic_before(ticks, next));
  if (next == 0 || next == pairs_.size()) return time;
  const ClockPair &left = pairs_[next - 1], &right = pairs_[next];
  const std::int64_t at_begin = time_of(left.monotonic);
  const std::int64_t at_end = time_of(right.monotonic);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (at_begin > -kMost && at_end < kMost) {
    const ClockPair rate = between(left, right);
    if (rate.ticks >= static_cast<std::uint64_t>(kMost)) return time;
    stretch = {left.ticks,     right.ticks, rate.ticks,
               rate.monotonic, at_begin,    1 / static_cast<double>(rate.ticks)};
  }
  return time;
}

std::int64_t Timeline::lasted(std::uint64_t end, std::uint64_t duration) const noexcept {
  // Both are within 63 bits, and so is their difference unless a file lies.
  const std::uint64_t length = monotonic_at(end) - monotonic_at(end - std::min(duration, end));
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(length, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace whence::read
