// chunks.cpp: see chunks.h.
#include "store/chunks.h"

namespace whence::store {

using format::ChunkClass;
using format::ChunkState;

std::uint32_t Chunks::add() noexcept {
  if (count_ == kNoChunk || table_.ensure(count_) == nullptr) return kNoChunk;
  *table_.at(count_) = {};
  return count_++;
}

void Chunks::open(std::uint32_t index, std::uint64_t sequence, ChunkClass what) noexcept {
  ChunkInfo& chunk = at(index);
  chunk.sequence = sequence;
  chunk.what = what;
  chunk.state = ChunkState::open;
  chunk.events = 0;
  if (what == ChunkClass::metadata) {
    ++metadata_;
    return;
  }
  chunk.older = newest_;
  chunk.newer = 0;
  if (newest_ != 0) at(newest_ - 1).newer = index + 1;
  if (oldest_ == 0) oldest_ = index + 1;
  newest_ = index + 1;
}

void Chunks::forget(std::uint32_t index) noexcept {
  ChunkInfo& chunk = at(index);
  (chunk.older != 0 ? at(chunk.older - 1).newer : oldest_) = chunk.newer;
  (chunk.newer != 0 ? at(chunk.newer - 1).older : newest_) = chunk.older;
  chunk = {};
}

void Chunks::clear() noexcept {
  count_ = metadata_ = oldest_ = newest_ = 0;
}

std::uint32_t Chunks::oldest_sealed(std::uint64_t before) const noexcept {
  for (std::uint32_t place = oldest_; place != 0; place = at(place - 1).newer) {
    const ChunkInfo& chunk = at(place - 1);
    if (chunk.state == ChunkState::sealed) return chunk.end_ticks < before ? place - 1 : kNoChunk;
  }
  return kNoChunk;
}

std::uint32_t Chunks::oldest_open(const Cursor* except) const noexcept {
  for (std::uint32_t place = oldest_; place != 0; place = at(place - 1).newer) {
    const ChunkInfo& chunk = at(place - 1);
    if (chunk.state == ChunkState::open && (chunk.owner == nullptr || chunk.owner != except)) {
      return place - 1;
    }
  }
  return kNoChunk;
}

}  // namespace whence::store
