// origins.h: where blocks of memory come from: a stack, a domain, a thread and what that has said
// about itself; numbered from 1.
//
// Threads: a table belongs to one. Allocates: for each origin, up to a budget.
// Fails by: kUnknown for one that there is no room for; std::bad_alloc.
//
// A program takes millions of blocks at some thousand places: a block knows the number, and sums by
// place are arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "read/budget.h"
#include "read/id_map.h"

namespace whence::read {

struct Origin {
  std::uint64_t stack = 0;
  std::uint64_t domain = 0;  // as of a MemoryEvent
  std::uint32_t thread = 0;
  std::uint64_t tags = 0;  // likewise
  bool operator==(const Origin&) const = default;
};

class Origins {
 public:
  static constexpr std::uint32_t kUnknown = 0;

  [[nodiscard]] std::uint32_t number(const Origin& origin, Budget& budget) {
    std::uint32_t& recent = recent_[Hash()(origin) % recent_.size()];
    if (recent == kUnknown || all_[recent] != origin) recent = find(origin, budget);
    return recent;
  }
  [[nodiscard]] const Origin& operator[](std::uint32_t number) const noexcept {
    return all_[number];
  }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }

 private:
  static constexpr std::size_t kRecent = 1 << 12;

  struct Hash {
    std::size_t operator()(const Origin& origin) const noexcept {
      const std::uint64_t place = base::mix(IdHash()(origin.stack), origin.domain);
      return base::mix(base::mix(place, origin.thread), origin.tags);
    }
  };

  [[nodiscard]] std::uint32_t find(const Origin& origin, Budget& budget) {
    const auto found = numbers_.find(origin);
    if (found != numbers_.end()) return found->second;
    if (!budget.afford(2 * kEntryCost)) return kUnknown;
    const auto number = static_cast<std::uint32_t>(all_.size());
    all_.push_back(origin);
    numbers_.emplace(origin, number);
    return number;
  }

  std::vector<Origin> all_{1};
  std::unordered_map<Origin, std::uint32_t, Hash> numbers_;
  std::array<std::uint32_t, kRecent> recent_{};
};

}  // namespace whence::read
