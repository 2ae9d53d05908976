// memory_usage.h: how much memory is in use as time goes by, and when it was most.
//
// Threads: a query belongs to one. Allocates: as a Replay, and 128 bytes a point, and 40 more for
// each pool, of which the first 64 are told apart; for the peak, 40 bytes an origin.
// Fails by: Next; std::bad_alloc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "read/memory_query.h"

namespace whence::read {

struct UsagePoint {
  std::int64_t time = 0;
  std::uint64_t bytes = 0, count = 0;  // of all domains
  struct Level {
    std::uint64_t bytes = 0, count = 0;
    bool operator==(const Level&) const = default;
  };
  struct PoolLevel {
    std::uint64_t domain;  // as of a MemoryEvent
    Level level;
    std::uint64_t reserved = 0;  // bytes of segments
    bool operator==(const PoolLevel&) const = default;
  };
  std::array<Level, format::kDomains> levels{};
  std::vector<PoolLevel> pools;  // as they were met
  std::uint64_t reserved = 0;    // by all of them
};
struct ResidentPoint {
  std::int64_t time;
  std::uint64_t bytes;
};

// The most that was in use at a time, and by what origin. One reading gives both: a second one of a
// ring that is still written would find other chunks, and groups that do not add up to the peak.
class PeakOfMemory : public MemoryQuery {
 public:
  using MemoryQuery::MemoryQuery;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return most_; }
  [[nodiscard]] std::int64_t time() const noexcept { return time_; }
  [[nodiscard]] std::vector<MemoryGroup> groups() const;

 protected:
  void before(const Change& change) override;
  [[nodiscard]] bool take(const Change& change) override;
  void begin() override { look(slice().from); }

 private:
  // What is in use, and what was at the peak if that is another: there are many more peaks than
  // origins that change between two of them.
  struct Sum {
    std::uint64_t bytes = 0, count = 0;
    std::uint64_t bytes_before = 0, count_before = 0;
    std::uint64_t peak = 0;  // the one that those are of
  };

  void look(std::int64_t time) noexcept;
  [[nodiscard]] Sum& sum_of(std::uint32_t origin);

  std::uint64_t bytes_ = 0, most_ = 0;
  std::int64_t time_ = 0;
  std::uint64_t peak_ = 0;  // its number
  std::vector<Sum> sums_;   // by origin
};

// Of more pools than are told apart, those that were met last.
inline constexpr std::uint64_t kOtherPools = ~std::uint64_t{0};

// A series of at most so many intervals, each with its maximum: the peak is one of them. What is in
// use where a slice begins counts for its first one, and what is in the end comes last.
class MemoryUsage : public MemoryQuery {
 public:
  // `end` is the last time of the recording.
  MemoryUsage(const Source& source, const Timeline& timeline, Slice slice, std::int64_t end,
              std::size_t intervals);

  [[nodiscard]] const std::vector<UsagePoint>& points() const noexcept { return points_; }
  [[nodiscard]] const std::vector<ResidentPoint>& resident() const noexcept { return resident_; }

 protected:
  void before(const Change& change) override { static_cast<void>(apply(change)); }
  [[nodiscard]] bool take(const Change& change) override;
  void begin() override;
  void finish() override;

 private:
  [[nodiscard]] bool apply(const Change& change);
  [[nodiscard]] UsagePoint::PoolLevel& pool_level(std::uint64_t domain);
  [[nodiscard]] bool is_more() const noexcept;
  [[nodiscard]] bool is_told() const noexcept;
  [[nodiscard]] std::uint64_t interval_of(std::int64_t time) const noexcept;

  std::int64_t start_;
  std::uint64_t width_;  // of an interval, in nanoseconds
  std::uint64_t last_;   // of the intervals: a file may lie about when it ends
  UsagePoint now_;
  std::vector<UsagePoint> points_;
  std::vector<ResidentPoint> resident_;
};

}  // namespace whence::read
