// arrow_blocks.cpp: see arrow_blocks.h.
#include "read/arrow_blocks.h"

#include <algorithm>
#include <array>
#include <memory>

#include "read/arrow_arrays.h"

namespace whence::read {
namespace {

constexpr std::size_t kRows = 1 << 16;

constexpr std::array kColumns = {
    ArrowColumn{"start", "l", false},   ArrowColumn{"end", "l", true},
    ArrowColumn{"address", "L", false}, ArrowColumn{"size", "L", false},
    ArrowColumn{"domain", "L", false},  ArrowColumn{"thread", "I", false},
    ArrowColumn{"stack", "L", true},
};

// What all arrays of a batch keep alive.
struct Batch {
  explicit Batch(std::span<const BlockRow> rows) {
    for (const BlockRow& row : rows) {
      start.push_back(row.start);
      end.push_back(row.end);
      address.push_back(row.address);
      size.push_back(row.size);
      domain.push_back(row.domain);
      thread.push_back(static_cast<std::uint32_t>(row.thread));
      stack.push_back(row.stack);
    }
    ends.fill(rows.size(), [&](std::size_t i) { return rows[i].end != kNeverEnds; });
    stacks.fill(rows.size(), [&](std::size_t i) { return rows[i].stack != 0; });
  }

  std::vector<std::int64_t> start, end;
  std::vector<std::uint64_t> address, size, domain, stack;
  std::vector<std::uint32_t> thread;
  ArrowValidity ends, stacks;
};

}  // namespace

void export_block_schema(ArrowSchema& out) {
  export_schema(kColumns, out);
}

Next ArrowBlocks::next(ArrowArray& out) {
  std::vector<BlockRow>& rows = blocks_.rows;
  if (given_ == rows.size()) {
    rows.clear();
    given_ = 0;
  }
  while (!over_ && rows.size() < kRows) {
    const Next next = blocks_.advance();
    if (next == Next::aborted) return next;
    over_ = next == Next::end;
  }
  const std::size_t count = std::min(rows.size() - given_, kRows);
  if (count == 0) return Next::end;
  const auto batch = std::make_shared<Batch>(std::span(rows).subspan(given_, count));
  given_ += count;
  ArrowBuilder columns(out, batch, count, kColumns.size());
  columns.add(batch->start.data());
  columns.add(batch->end.data(), &batch->ends);
  columns.add(batch->address.data());
  columns.add(batch->size.data());
  columns.add(batch->domain.data());
  columns.add(batch->thread.data());
  columns.add(batch->stack.data(), &batch->stacks);
  return Next::record;
}

}  // namespace whence::read
