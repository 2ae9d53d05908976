// chunks.h: which chunks a file has, and which one to take next.
//
// Threads: one at a time, under the store's lock.
// Allocates: when the table grows, by mmap.
// Fails by: kNoChunk.
//
// Chunks of events in use form a list in the order in which they were opened, so the oldest is at
// its head. Nothing here touches the file.
#pragma once

#include <cstdint>

#include "base/segments.h"
#include "format/chunk.h"
#include "store/cursor.h"

namespace whence::store {

inline constexpr std::uint32_t kNoChunk = 0xFFFFFFFF;

struct ChunkInfo {
  std::uint64_t sequence;   // 0: free
  std::uint64_t end_ticks;  // of a sealed one
  format::ChunkClass what;
  format::ChunkState state;
  std::uint32_t events;         // in a sealed one
  std::uint32_t handed_over;    // in an open one: events of threads before its owner
  std::uint32_t older, newer;   // in the list, as index + 1; 0: none
  format::ChunkHeader* mapped;  // nullptr once sealed
  Cursor* owner;                // of an open one; nullptr: parked, or metadata
};

class Chunks {
 public:
  [[nodiscard]] ChunkInfo& at(std::uint32_t index) const noexcept { return *table_.at(index); }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint32_t metadata_count() const noexcept { return metadata_; }

  // One more chunk at the end of the file.
  [[nodiscard]] std::uint32_t add() noexcept;
  // Puts it to use; `add` and `forget` are the only other changes to the list.
  void open(std::uint32_t index, std::uint64_t sequence, format::ChunkClass what) noexcept;
  // Its content counts no more.
  void forget(std::uint32_t index) noexcept;
  void clear() noexcept;

  // The oldest sealed chunk of events; with `before`, only if it ended before that.
  [[nodiscard]] std::uint32_t oldest_sealed(std::uint64_t before = ~std::uint64_t{
                                                0}) const noexcept;
  // The oldest open one that belongs to another thread than `except`.
  [[nodiscard]] std::uint32_t oldest_open(const Cursor* except) const noexcept;

 private:
  base::Segments<ChunkInfo, 8> table_;
  std::uint32_t count_ = 0, metadata_ = 0;
  std::uint32_t oldest_ = 0, newest_ = 0;  // index + 1
};

}  // namespace whence::store
