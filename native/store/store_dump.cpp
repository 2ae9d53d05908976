// store_dump.cpp: a copy of the recording as it is at one moment, while it goes on.
//
// The moment is the snapshot, taken under the lock: which chunks there are, and how much of each.
// They are copied without it, through the file. What the ring takes in the meantime is lost to the
// copy too, and counted there.
#include <errno.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/pages.h"
#include "base/system.h"
#include "store/store.h"

namespace whence::store {

using format::ChunkHeader;
using format::Committed;
using format::Reason;

struct Store::Snapshot {
  struct Entry {
    std::uint64_t sequence;
    std::uint64_t word;
    std::uint64_t end_ticks, end_monotonic;
    std::uint32_t index;
    format::ChunkClass what;
  };

  ~Snapshot() { base::unmap_pages(entries, bytes); }

  // Room for `most` entries and one chunk.
  [[nodiscard]] bool make_room(std::uint32_t most, std::uint32_t chunk_size) noexcept {
    base::unmap_pages(entries, bytes);
    room = most;
    bytes = most * sizeof(Entry) + chunk_size;
    entries = static_cast<Entry*>(base::map_pages(bytes));
    buffer = reinterpret_cast<std::uint8_t*>(entries + most);
    return entries != nullptr;
  }

  format::FileHeader header;
  Entry* entries = nullptr;
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0;
  std::uint32_t room = 0, count = 0;
  std::uint64_t oldest = 0;  // ticks; what ended before is too old
};

void Store::take_snapshot(Snapshot& snapshot) noexcept {
  const base::ClockPair now = base::read_clocks();
  snapshot.header = *header_;
  snapshot.header.end_ticks = now.ticks;
  snapshot.header.end_monotonic = now.monotonic;
  snapshot.oldest = keep_ticks_ != 0 && now.ticks > keep_ticks_ ? now.ticks - keep_ticks_ : 0;
  for (std::uint32_t i = 0; i < chunks_.count(); ++i) {
    const ChunkInfo& chunk = chunks_.at(i);
    if (chunk.sequence == 0) continue;
    std::uint64_t word = 0;  // of a sealed one its header has it, and it does not change
    if (chunk.mapped != nullptr) word = format::read_committed(*chunk.mapped).word();
    const bool sealed = chunk.state == format::ChunkState::sealed;
    snapshot.entries[snapshot.count++] = {chunk.sequence,
                                          sealed ? std::uint64_t{chunk.events} << 32 : word,
                                          sealed ? chunk.end_ticks : now.ticks,
                                          sealed ? 0 : now.monotonic,
                                          i,
                                          chunk.what};
  }
}

// The chunk of one entry, read through the file and sealed as of the snapshot. False if it is gone.
bool Store::copy_chunk(Snapshot& snapshot, std::uint32_t number, int& error) noexcept {
  const Snapshot::Entry& entry = snapshot.entries[number];
  if (entry.what == format::ChunkClass::events && entry.end_ticks < snapshot.oldest) return false;
  const auto size = static_cast<ssize_t>(chunk_size_);
  const ssize_t got = base::read_all(file_.descriptor(), snapshot.buffer, chunk_size_,
                                     static_cast<off_t>(place_of(entry.index)));
  if (got != size) {
    error = got < 0 ? errno : EIO;
    return false;
  }
  {
    const base::Holding holding(lock_);
    if (chunks_.at(entry.index).sequence != entry.sequence) return false;
  }
  auto& chunk = *reinterpret_cast<ChunkHeader*>(snapshot.buffer);
  if (entry.end_monotonic != 0) {  // it was open
    chunk.committed = entry.word;
    chunk.end_ticks = entry.end_ticks;
    chunk.end_monotonic = entry.end_monotonic;
  }
  chunk.state = static_cast<std::uint32_t>(format::ChunkState::sealed);
  chunk.stored = Committed::from(chunk.committed).bytes;
  chunk.coding = format::Coding::plain;
  chunk.payload_checksum = base::checksum(&chunk + 1, chunk.stored);
  seal_closing(chunk);
  return true;
}

base::FileId Store::file_id() noexcept {
  if (!cursors_.same_process()) return {};
  const base::Holding holding(lock_);
  return state_ != State::idle ? file_.id() : base::FileId{};
}

int Store::dump(int file) noexcept {
  if (!cursors_.same_process()) return ECHILD;
  Snapshot snapshot;
  for (;;) {
    const base::Holding holding(lock_);
    if (state_ == State::idle) return EINVAL;
    if (header_ == &spare_header_) return header_->error;
    if (!file_.is_ours()) return EBADF;
    if (snapshot.room >= chunks_.count() && snapshot.entries != nullptr) {
      take_snapshot(snapshot);
      break;
    }
    if (!snapshot.make_room(chunks_.count() + 64, chunk_size_)) return ENOMEM;
  }
  // Newest first: the ring takes the oldest, so what is lost on the way leaves no gap.
  std::sort(snapshot.entries, snapshot.entries + snapshot.count,
            [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
  format::FileHeader& header = snapshot.header;
  std::uint64_t& overwritten = header.dropped[static_cast<std::size_t>(Reason::ring)];
  overwritten += header.journal.after;
  header.journal = {};
  header.produced = 0;
  for (const std::uint64_t dropped : header.dropped) header.produced += dropped;
  for (std::uint32_t i = 0; i < snapshot.count; ++i) {
    header.produced += Committed::from(snapshot.entries[i].word).events;
  }
  header.layout = format::Layout::compact;
  std::uint64_t place = header.header_size;
  int error = 0;
  for (std::uint32_t i = 0; i < snapshot.count && error == 0; ++i) {
    if (!copy_chunk(snapshot, i, error)) {
      overwritten += Committed::from(snapshot.entries[i].word).events;
      continue;
    }
    const auto& chunk = *reinterpret_cast<const ChunkHeader*>(snapshot.buffer);
    ++header.chunks;
    const std::size_t size = sizeof chunk + chunk.stored;
    error = base::write_all(file, &chunk, size, static_cast<off_t>(place));
    place += size;
  }
  if (error != 0) return error;
  if (header.state == format::FileState::recording) header.state = format::FileState::closed;
  seal_opening(header);
  seal_closing(header);
  // Last, so that a dump that was cut short is no recording at all.
  return base::write_all(file, &header, sizeof header, 0);
}

}  // namespace whence::store
