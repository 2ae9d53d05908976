// largest_blocks.h: the largest blocks of memory, as many as there is room for.
//
// Threads: a query belongs to one. Allocates: as MemoryBlocks, and 56 bytes a block that it keeps.
// Fails by: Next; std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "read/memory_blocks.h"

namespace whence::read {

class LargestBlocks : public MemoryBlocks {
 public:
  // Of those that were taken in the slice, or of those that are in use at its end.
  enum class Which : std::uint8_t { taken, in_use };

  LargestBlocks(const Source& source, const Timeline& timeline, Slice slice, Which which,
                std::size_t most)
      : MemoryBlocks(source, timeline, std::move(slice)), which_(which), most_(most) {}

  // In the end: by when they were taken.
  [[nodiscard]] const std::vector<BlockRow>& blocks() const noexcept { return blocks_; }
  // Those for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
  [[nodiscard]] std::uint64_t bytes_left_out() const noexcept { return bytes_left_out_; }

 protected:
  void row(const BlockRow& row) override;
  void finish() override;

 private:
  Which which_;
  std::size_t most_;
  std::vector<BlockRow> blocks_;  // a heap, the smallest first
  std::uint64_t left_out_ = 0, bytes_left_out_ = 0;
};

}  // namespace whence::read
