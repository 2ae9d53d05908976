// problems.h: what is wrong with a recording, and where.
//
// Threads: a list belongs to one. Allocates: for at most kMostProblems. Fails by: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace whence::read {

struct Problem {
  std::uint64_t offset;  // in the file
  const char* what;      // a constant
};

// A file can have more wrong with it than anybody reads: the rest is counted.
class Problems {
 public:
  static constexpr std::size_t kMostProblems = 100;

  void add(std::uint64_t offset, const char* what) {
    if (list_.size() < kMostProblems) {
      list_.push_back({offset, what});
    } else {
      ++more_;
    }
  }
  [[nodiscard]] const std::vector<Problem>& list() const noexcept { return list_; }
  [[nodiscard]] std::uint64_t more() const noexcept { return more_; }
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }

 private:
  std::vector<Problem> list_;
  std::uint64_t more_ = 0;
};

// Counts come from files that may lie: they stop at the largest number instead of starting again.
[[nodiscard]] constexpr std::uint64_t add_counts(std::uint64_t a, std::uint64_t b) noexcept {
  return a > ~std::uint64_t{0} - b ? ~std::uint64_t{0} : a + b;
}

}  // namespace whence::read
