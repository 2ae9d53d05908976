// memory_groups.h: which blocks are in use at a time, and which were given back at once, by origin.
//
// Threads: a query belongs to one. Allocates: as a Replay, and 48 bytes an origin.
// Fails by: Next; std::bad_alloc.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "read/memory_query.h"

namespace whence::read {

// The blocks in use after all changes until a time; of those, the ones that were taken in
// [from, to). Whenever it ends, that is where it looks.
class LiveGroups : public MemoryQuery {
 public:
  struct Wanted {
    std::int64_t from = std::numeric_limits<std::int64_t>::min();
    std::int64_t to = std::numeric_limits<std::int64_t>::max();
    std::int64_t until = std::numeric_limits<std::int64_t>::max();
  };

  LiveGroups(const Source& source, const Timeline& timeline, Slice slice, Wanted wanted);

  // At the end.
  [[nodiscard]] const std::vector<MemoryGroup>& groups() const noexcept { return groups_; }

 protected:
  [[nodiscard]] bool take(const Change&) override { return true; }
  void finish() override;

 private:
  Wanted wanted_;
  std::vector<MemoryGroup> groups_;
};

// Blocks that were freed before their thread had taken `within` further ones, and parts of mappings
// that were.
class Churn : public MemoryQuery {
 public:
  Churn(const Source& source, const Timeline& timeline, Slice slice, std::uint64_t within)
      : MemoryQuery(source, timeline, std::move(slice)), within_(within) {}

  [[nodiscard]] std::vector<MemoryGroup> groups() const { return sums_.groups(replay().origins()); }

 protected:
  [[nodiscard]] bool take(const Change& change) override;

 private:
  std::uint64_t within_;
  MemorySums sums_;
};

}  // namespace whence::read
