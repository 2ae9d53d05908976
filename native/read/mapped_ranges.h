// mapped_ranges.h: which addresses are mapped, as ranges that have none in common.
//
// Threads: an instance belongs to one. Allocates: for each range, within a budget.
// Fails by: false from add(); std::bad_alloc.
//
// Blocks are given back as they were taken, by their address. Mappings need not be: a part of one
// may go, or several at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "read/budget.h"

namespace whence::read {

// The last is in it, so that the end of all addresses needs no number of its own.
struct Range {
  std::uint64_t first, last;

  // Sizes come from files that may lie: what is beyond all addresses is cut. Nothing is one byte.
  [[nodiscard]] static Range of(std::uint64_t address, std::uint64_t size) noexcept {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - address;
    return {address, address + std::min(std::max<std::uint64_t>(size, 1) - 1, most)};
  }
};

class MappedRanges {
 public:
  // One that has nothing in common with those that are there.
  [[nodiscard]] bool add(Range range, Budget& budget) {
    if (!budget.afford(kCost)) return false;
    lasts_.emplace(range.first, range.last);
    return true;
  }

  // Takes the first one out that has an address in common with that.
  [[nodiscard]] std::optional<Range> take(Range other, Budget& budget) {
    auto found = lasts_.upper_bound(other.first);
    if (found != lasts_.begin() && std::prev(found)->second >= other.first) --found;
    if (found == lasts_.end() || found->first > other.last) return std::nullopt;
    const Range range{found->first, found->second};
    lasts_.erase(found);
    budget.give_back(kCost);
    return range;
  }

 private:
  static constexpr std::size_t kCost = 64;

  std::map<std::uint64_t, std::uint64_t> lasts_;  // by the first address
};

}  // namespace whence::read
