// largest_blocks.cpp: see largest_blocks.h.
#include "read/largest_blocks.h"

#include <algorithm>
#include <tuple>

namespace whence::read {
namespace {

// Of two of the same size, the earlier one is kept.
bool is_kept_before(const BlockRow& a, const BlockRow& b) noexcept {
  return std::tie(b.size, a.start, a.address, a.domain) <
         std::tie(a.size, b.start, b.address, b.domain);
}

}  // namespace

void LargestBlocks::row(const BlockRow& row) {
  const bool wanted = which_ == Which::in_use ? row.end == kNeverEnds : row.start >= slice().from;
  if (!wanted) return;
  std::uint64_t lost = row.size;
  if (blocks_.size() < most_) {
    blocks_.push_back(row);
    std::push_heap(blocks_.begin(), blocks_.end(), is_kept_before);
    return;
  }
  if (!blocks_.empty() && is_kept_before(row, blocks_.front())) {
    std::pop_heap(blocks_.begin(), blocks_.end(), is_kept_before);
    lost = blocks_.back().size;
    blocks_.back() = row;
    std::push_heap(blocks_.begin(), blocks_.end(), is_kept_before);
  }
  ++left_out_;
  bytes_left_out_ += lost;
}

void LargestBlocks::finish() {
  MemoryBlocks::finish();
  std::sort(blocks_.begin(), blocks_.end(), [](const BlockRow& a, const BlockRow& b) {
    return std::tie(a.start, a.address, a.domain) < std::tie(b.start, b.address, b.domain);
  });
}

}  // namespace whence::read
