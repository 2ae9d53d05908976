// budget.h: how much memory may go into what a file claims to hold.
//
// Threads: a budget belongs to one. Allocates: never. Fails by: afford(), which counts refusals.
//
// A small file may hold much, if it is packed; a hostile one may claim to hold anything. So what is
// kept of a file goes with its size, and what does not fit is counted instead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace whence::read {

class Budget {
 public:
  Budget() = default;
  Budget(std::uint64_t least, std::uint64_t file_size) noexcept
      : left_(std::max(least, file_size * kPerByte)) {}

  [[nodiscard]] bool afford(std::uint64_t bytes) noexcept {
    if (bytes > left_) {
      ++refused_;
      return false;
    }
    left_ -= bytes;
    return true;
  }
  void give_back(std::uint64_t bytes) noexcept { left_ += bytes; }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  static constexpr std::uint64_t kPerByte = 16;

  std::uint64_t left_ = 0;
  std::uint64_t refused_ = 0;
};

// A table entry of up to 64 bytes, with its share of the table.
inline constexpr std::size_t kEntryCost = 112;

}  // namespace whence::read
