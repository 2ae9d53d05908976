// memory_blocks.h: every block of memory with its whole life, as one row.
//
// Threads: a query belongs to one. Allocates: as a Replay, of the same budget a row for each thread
// that frees blocks, and in the end a row for each block that is in use.
// Fails by: Next; std::bad_alloc.
//
// A row is given when its block has ended, which is known for sure with the next free of the same
// thread: a realloc that failed takes its free back. For a thread that there is no room for, it is
// given at once. Blocks that never end come last, the oldest first. Of a mapping that goes by parts
// there is a row for each: what has gone, and what is left since the same time.
//
// Of a slice: the blocks that were in use in it, with the times that they have.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "read/memory_query.h"

namespace whence::read {

inline constexpr std::int64_t kNeverEnds = std::numeric_limits<std::int64_t>::max();

// Numbers of 64 bits, without gaps: it is handed to Python as it is.
struct BlockRow {
  std::int64_t start, end;  // kNeverEnds: it is in use at the end
  std::uint64_t address, size;
  std::uint64_t domain, stack, thread;  // as of a MemoryEvent
};
static_assert(sizeof(BlockRow) == 7 * sizeof(std::uint64_t));

class MemoryBlocks : public MemoryQuery {
 public:
  using MemoryQuery::MemoryQuery;

 protected:
  virtual void row(const BlockRow& row) = 0;

  [[nodiscard]] bool take(const Change& change) override;
  void finish() override;

 private:
  [[nodiscard]] BlockRow row_of(const Block& block, std::int64_t end) const noexcept;

  using Ended = std::optional<BlockRow>;
  [[nodiscard]] Ended* ended_by(std::uint32_t thread);
  void keep_ended(std::uint32_t thread, const BlockRow& made);

  void end_cut();

  Ended cut_;           // a mapping that has gone, until it is known what is left of it
  IdMap<Ended> ended_;  // the last one that each thread has freed
  std::uint32_t thread_id_ = 0;
  Ended* thread_ = nullptr;  // of the one with that id
};

}  // namespace whence::read
