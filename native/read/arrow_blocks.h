// arrow_blocks.h: batches of blocks of memory as Arrow arrays.
//
// Threads: as of an ArrowTable. Allocates: as MemoryBlocks, and a batch at a time.
// Fails by: Next; std::bad_alloc.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "read/arrow_table.h"
#include "read/memory_blocks.h"

namespace whence::read {

void export_block_schema(ArrowSchema& out);

class ArrowBlocks : public ArrowTable {
 public:
  // All but the slice outlive it.
  ArrowBlocks(const Source& source, const Timeline& timeline, Slice slice)
      : blocks_(source, timeline, std::move(slice)) {}

  [[nodiscard]] Next next(ArrowArray& out) override;
  [[nodiscard]] std::optional<std::int64_t> read_until() const noexcept override {
    return blocks_.replay().read_until();
  }

 private:
  struct Waiting : MemoryBlocks {
    using MemoryBlocks::MemoryBlocks;
    void row(const BlockRow& row) override { rows.push_back(row); }
    std::vector<BlockRow> rows;
  };

  Waiting blocks_;
  std::size_t given_ = 0;  // of the rows that wait
  bool over_ = false;
};

}  // namespace whence::read
