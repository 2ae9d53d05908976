// store_chunks.cpp: how the store comes by chunks, and what becomes of full ones. All under its
// lock.
#include <errno.h>

#include <cstring>

#include "base/checksum.h"
#include "base/clock.h"
#include "store/store.h"

namespace whence::store {

using format::ChunkClass;
using format::ChunkHeader;
using format::ChunkState;
using format::Reason;

namespace {

constexpr std::uint64_t kMostMetadataBytes = std::uint64_t{256} << 20;

// A kill may come between any two of these.
void store_in_order(std::uint64_t& place, std::uint64_t value) noexcept {
  std::atomic_ref(place).store(value, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

std::uint32_t Store::take_chunk(ChunkClass what, const Cursor* taker, std::uint32_t thread,
                                std::uint64_t first_event) noexcept {
  const std::uint32_t index = find_chunk(what, taker);
  if (index == kNoChunk) return kNoChunk;
  ChunkHeader& header = *chunks_.at(index).mapped;
  format::publish_committed(header.committed, 0);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  header = {};
  const base::ClockPair start = base::read_clocks();
  header.magic = format::kChunkMagic;
  std::memcpy(&header.file_id, header_->file_id.data(), sizeof header.file_id);
  header.sequence = ++sequence_;
  header.what = what;
  header.thread = thread;
  header.first_event = first_event;
  header.start_ticks = start.ticks;
  header.start_monotonic = start.monotonic;
  seal_opening(header);
  publish_state(header, ChunkState::open);
  chunks_.open(index, sequence_, what);
  return index;
}

std::uint64_t Store::most_metadata() const noexcept {
  return most_chunks_ != 0 ? most_chunks_ / 2 : kMostMetadataBytes / chunk_size_;
}

// A mapped chunk that nobody uses. What is too old goes first; then the file grows as far as it
// may; then the oldest goes, sealed ones before those that a thread still holds.
std::uint32_t Store::find_chunk(ChunkClass what, const Cursor* taker) noexcept {
  if (what == ChunkClass::metadata && chunks_.metadata_count() >= most_metadata()) return kNoChunk;
  std::uint32_t index = kNoChunk;
  if (keep_ticks_ != 0) {
    const std::uint64_t now = base::ticks();
    if (now > keep_ticks_) index = chunks_.oldest_sealed(now - keep_ticks_);
  }
  if (index == kNoChunk && (most_chunks_ == 0 || chunks_.count() < most_chunks_)) {
    return grow(taker != nullptr && taker->chunks != 0);
  }
  if (index == kNoChunk) index = chunks_.oldest_sealed();
  if (index == kNoChunk) {
    index = chunks_.oldest_open(taker);
    if (index == kNoChunk || !steal(index)) return kNoChunk;
  }
  if (!map_chunk(index)) return kNoChunk;
  retire(index);
  return index;
}

// A thread that has filled a chunk will fill the next one, too.
std::uint32_t Store::grow(bool will_be_filled) noexcept {
  const std::uint32_t index = chunks_.count();
  const auto pages = will_be_filled ? File::Pages::written : File::Pages::reserved;
  if (const int error = file_.reserve(place_of(index), chunk_size_, pages)) {
    fail(reason_of(error), error);
    return kNoChunk;
  }
  if (chunks_.add() == kNoChunk) {
    fail(Reason::memory, ENOMEM);
    return kNoChunk;
  }
  return map_chunk(index) ? index : kNoChunk;
}

bool Store::map_chunk(std::uint32_t index) noexcept {
  ChunkInfo& chunk = chunks_.at(index);
  chunk.mapped = static_cast<ChunkHeader*>(file_.map(place_of(index), chunk_size_));
  if (chunk.mapped == nullptr) fail(errno == EBADF ? Reason::io : Reason::memory, errno);
  return chunk.mapped != nullptr;
}

// Takes a chunk out of the ring. In this order any part of it leaves a sum that is right: until the
// last store but one the journal tells of the chunk before, or of this one as still there.
void Store::retire(std::uint32_t index) noexcept {
  ChunkInfo& chunk = chunks_.at(index);
  ChunkHeader* mapped = chunk.mapped;
  format::RingJournal& journal = header_->journal;
  const std::uint64_t events = chunk.events;
  store_in_order(journal.before, journal.after);
  store_in_order(journal.sequence, chunk.sequence);
  store_in_order(journal.index, std::uint64_t{index} + 1);
  store_in_order(journal.after, journal.before + events);
  publish_state(*mapped, ChunkState::free);
  sealed_events_ -= events;
  chunks_.forget(index);
  chunks_.at(index).mapped = mapped;
}

void Store::seal(std::uint32_t index, std::uint64_t word) noexcept {
  ChunkInfo& chunk = chunks_.at(index);
  ChunkHeader& header = *chunk.mapped;
  const auto committed = format::Committed::from(word);
  const base::ClockPair end = base::read_clocks();
  header.end_ticks = end.ticks;
  header.end_monotonic = end.monotonic;
  header.payload_checksum = base::checksum(&header + 1, committed.bytes);
  seal_closing(header);
  publish_state(header, ChunkState::sealed);
  File::unmap(&header, chunk_size_);
  sealed_events_ += committed.events;
  chunk.end_ticks = end.ticks;
  chunk.events = committed.events;
  chunk.handed_over = 0;
  chunk.state = ChunkState::sealed;
  chunk.mapped = nullptr;
  chunk.owner = nullptr;
}

// From a thread that is idle, or from nobody.
bool Store::steal(std::uint32_t index) noexcept {
  Cursor* owner = chunks_.at(index).owner;
  if (owner == nullptr) {
    seal_parked();
    return true;
  }
  if (!cursors_.close(*owner)) return false;
  detach(*owner);
  return true;
}

}  // namespace whence::store
