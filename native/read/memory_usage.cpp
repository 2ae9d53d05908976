// memory_usage.cpp: see memory_usage.h.
#include "read/memory_usage.h"

#include <algorithm>
#include <limits>

namespace whence::read {
namespace {

using What = Change::What;
using Action = MemoryEvent::Action;

constexpr std::size_t kMostPools = 64;

std::uint64_t between(std::int64_t first, std::int64_t last) noexcept {
  return last > first ? static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) : 0;
}

}  // namespace

// About to be changed.
PeakOfMemory::Sum& PeakOfMemory::sum_of(std::uint32_t origin) {
  if (origin >= sums_.size()) sums_.resize(std::size_t{origin} + 1);
  Sum& sum = sums_[origin];
  if (sum.peak != peak_) {
    sum.bytes_before = sum.bytes;
    sum.count_before = sum.count;
    sum.peak = peak_;
  }
  return sum;
}

void PeakOfMemory::before(const Change& change) {
  if (!change.of_block() || !is_wanted(change.block)) return;
  const bool ended = change.what == What::ended;
  const std::uint64_t size = ended ? 0 - change.block.size : change.block.size;
  Sum& sum = sum_of(change.block.origin);
  sum.bytes += size;
  sum.count += ended ? 0 - std::uint64_t{1} : 1;
  bytes_ += size;
}

bool PeakOfMemory::take(const Change& change) {
  before(change);
  look(change.event.time);
  return true;
}

void PeakOfMemory::look(std::int64_t time) noexcept {
  if (bytes_ <= most_) return;
  most_ = bytes_;
  time_ = time;
  ++peak_;
}

std::vector<MemoryGroup> PeakOfMemory::groups() const {
  std::vector<MemoryGroup> found;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Sum& sum = sums_[i];
    const bool changed = sum.peak == peak_;
    const std::uint64_t count = changed ? sum.count_before : sum.count;
    if (count == 0) continue;
    const Origin& origin = replay().origins()[static_cast<std::uint32_t>(i)];
    found.push_back({origin, changed ? sum.bytes_before : sum.bytes, count});
  }
  return found;
}

MemoryUsage::MemoryUsage(const Source& source, const Timeline& timeline, Slice slice,
                         std::int64_t end, std::size_t intervals)
    : MemoryQuery(source, timeline, slice),
      start_(std::max<std::int64_t>(slice.from, 0)),
      width_(between(start_, std::min(slice.to, end)) / intervals + 1),
      last_(intervals - 1) {}

std::uint64_t MemoryUsage::interval_of(std::int64_t time) const noexcept {
  return std::min(between(start_, time) / width_, last_);
}

UsagePoint::PoolLevel& MemoryUsage::pool_level(std::uint64_t domain) {
  for (UsagePoint::PoolLevel& pool : now_.pools) {
    if (pool.domain == domain || pool.domain == kOtherPools) return pool;
  }
  now_.pools.push_back({now_.pools.size() < kMostPools ? domain : kOtherPools, {}});
  return now_.pools.back();
}

bool MemoryUsage::apply(const Change& change) {
  if (change.what == What::nothing || !is_wanted(change.block)) return false;
  const bool ended = change.what == What::ended;
  const std::uint64_t size = ended ? 0 - change.block.size : change.block.size;
  if (change.of_segment) {
    pool_level(change.event.domain).reserved += size;
    now_.reserved += size;
    return true;
  }
  const std::uint64_t domain = replay().origins()[change.block.origin].domain;
  UsagePoint::Level& level = is_pool(domain) ? pool_level(domain).level : now_.levels[domain];
  const std::uint64_t one = ended ? 0 - std::uint64_t{1} : 1;
  now_.bytes += size;
  now_.count += one;
  level.bytes += size;
  level.count += one;
  return true;
}

// Is more in use than at the last point? Else, is more held for it?
bool MemoryUsage::is_more() const noexcept {
  const UsagePoint& last = points_.back();
  return now_.bytes != last.bytes ? now_.bytes > last.bytes : now_.reserved > last.reserved;
}

// Is the last point what there is now? Pools that were met since then and have nothing are nothing
// new: a segment may be empty.
bool MemoryUsage::is_told() const noexcept {
  const UsagePoint& last = points_.back();
  const auto is_empty = [](const UsagePoint::PoolLevel& pool) {
    return pool.level == UsagePoint::Level{} && pool.reserved == 0;
  };
  const auto later = now_.pools.begin() + static_cast<std::ptrdiff_t>(last.pools.size());
  return now_.time == last.time && now_.bytes == last.bytes && now_.count == last.count &&
         now_.reserved == last.reserved && now_.levels == last.levels &&
         std::equal(last.pools.begin(), last.pools.end(), now_.pools.begin()) &&
         std::all_of(later, now_.pools.end(), is_empty);
}

bool MemoryUsage::take(const Change& change) {
  const std::int64_t time = change.event.time;
  if (change.event.action == Action::resident) {
    const ResidentPoint point{time, change.event.size};
    if (resident_.empty() || interval_of(resident_.back().time) != interval_of(time)) {
      resident_.push_back(point);
    } else if (point.bytes > resident_.back().bytes) {
      resident_.back() = point;
    }
  }
  const bool applied = apply(change);
  const bool is_state = change.event.action == Action::state;  // it is told as a whole
  if (is_state ? change.what != What::nothing : !applied) return true;
  now_.time = time;
  if (points_.empty() || interval_of(points_.back().time) != interval_of(time)) {
    points_.push_back(now_);
  } else if (is_more()) {
    points_.back() = now_;
  }
  return true;
}

void MemoryUsage::begin() {
  now_.time = slice().from;
  points_.push_back(now_);
}

void MemoryUsage::finish() {
  if (!points_.empty() && !is_told()) points_.push_back(now_);
}

}  // namespace whence::read
