// source.cpp: see source.h. FORMAT.md, "How a chunk is read", is the rule that this follows.
#include "read/source.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace whence::read {
namespace {

using format::ChunkHeader;
using format::ChunkState;
using format::FileHeader;
using format::FileState;

// A recorder that is killed while it closes may leave the checksum of a state that it did not get
// to write.
bool closing_agrees(const FileHeader& header) noexcept {
  if (format::closing_is_good(header)) return true;
  if (header.state != FileState::recording) return false;
  FileHeader meant = header;
  for (const FileState state : {FileState::closed, FileState::ended}) {
    meant.state = state;
    if (format::closing_is_good(meant)) return true;
  }
  return false;
}

}  // namespace

Opened Source::open() {
  const std::size_t got = input_.read(0, &header_, sizeof header_);
  switch (format::check(header_)) {
    case format::HeaderCheck::not_a_recording: return Opened::not_a_recording;
    case format::HeaderCheck::too_new: return Opened::too_new;
    case format::HeaderCheck::damaged:
      return got < sizeof header_ ? Opened::cut_short : Opened::damaged;
    case format::HeaderCheck::good: break;
  }
  if (got < sizeof header_) return Opened::cut_short;
  closing_is_good_ = closing_agrees(header_);
  if (!closing_is_good_) {
    problems_.add(offsetof(FileHeader, state), "the end of the file header is damaged");
  }
  if (compact()) {
    list_compact();
  } else {
    list_fixed(false);
    // Events listed just now may refer to metadata in a chunk that was opened behind our back.
    if (live()) list_fixed(true);
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    const auto key = [](const Entry& entry) {
      return std::tuple(entry.what != format::ChunkClass::metadata, entry.sequence, entry.offset);
    };
    return key(a) < key(b);
  });
  return Opened::good;
}

std::uint64_t Source::file_id() const noexcept {
  std::uint64_t half;
  std::memcpy(&half, header_.file_id.data(), sizeof half);
  return half;
}

void Source::list_fixed(bool metadata_only) {
  const std::size_t before = entries_.size();
  for (std::uint64_t offset = header_.header_size; offset < input_.size();
       offset += header_.chunk_size) {
    ChunkHeader header;
    if (input_.read(offset, &header, sizeof header) < sizeof header) {
      if (!metadata_only) problems_.add(offset, "the file ends within the header of a chunk");
      return;
    }
    if (header.state == static_cast<std::uint32_t>(ChunkState::free)) continue;
    if (!metadata_only) {
      static_cast<void>(list_one(header, offset));
      continue;
    }
    // The first listing went through the file in this order too.
    const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(before);
    const auto known = std::lower_bound(
        entries_.begin(), end, offset,
        [](const Entry& entry, std::uint64_t wanted) { return entry.offset < wanted; });
    const bool listed =
        known != end && known->offset == offset && known->sequence == header.sequence;
    if (!listed && header.what == format::ChunkClass::metadata &&
        format::opening_is_good(header, file_id())) {
      static_cast<void>(list_one(header, offset));
    }
  }
}

void Source::list_compact() {
  for (std::uint64_t offset = header_.header_size; offset < input_.size();) {
    ChunkHeader header;
    if (input_.read(offset, &header, sizeof header) < sizeof header) {
      problems_.add(offset, "the file ends within the header of a chunk");
      return;
    }
    if (!list_one(header, offset)) {
      if (offset + sizeof header < input_.size()) {
        problems_.add(offset, "nothing after this chunk can be found");
      }
      return;
    }
    packed_ = packed_ || header.coding == format::Coding::zstd;
    offset += sizeof header + header.stored;
  }
}

// Whether the header says where the next one is, in the compact layout.
bool Source::list_one(const ChunkHeader& header, std::uint64_t offset) {
  const auto state = static_cast<ChunkState>(header.state);
  const bool closing = format::closing_is_good(header);
  if (!format::opening_is_good(header, file_id())) {
    damaged(header, offset, "the header of a chunk is damaged");
  } else if (state != ChunkState::open && state != ChunkState::sealed) {
    damaged(header, offset, "a chunk is neither open nor sealed");
  } else if (state == ChunkState::sealed ? !closing : compact()) {
    damaged(header, offset, "the header of a chunk is damaged");
  } else if (header.what != format::ChunkClass::events &&
             header.what != format::ChunkClass::metadata) {
    damaged(header, offset, "a chunk is neither of events nor of metadata");
  } else {
    entries_.push_back(
        {header.sequence, offset, header.committed, header.what, state, header.thread});
  }
  return closing;
}

void Source::damaged(const ChunkHeader& header, std::uint64_t offset, const char* what) {
  problems_.add(offset, what);
  ++chunks_damaged_;
  if (format::closing_is_good(header)) {
    events_damaged_ = add_counts(events_damaged_, format::Committed::from(header.committed).events);
  }
}

std::uint64_t Source::ring_events() const noexcept {
  FileHeader now;
  if (!live() || input_.read(0, &now, sizeof now) < sizeof now) now = header_;
  const std::uint64_t dropped = now.dropped[static_cast<std::size_t>(format::Reason::ring)];
  const format::RingJournal& journal = now.journal;
  if (journal.index == 0) return dropped;
  ChunkHeader chunk{};
  bool still_there = false;
  if (!compact() && journal.index - 1 <= input_.size() / header_.chunk_size) {
    const std::uint64_t offset = header_.header_size + (journal.index - 1) * header_.chunk_size;
    still_there = input_.read(offset, &chunk, sizeof chunk) == sizeof chunk && chunk.state != 0 &&
                  chunk.sequence == journal.sequence;
  }
  return add_counts(dropped, still_there ? journal.before : journal.after);
}

}  // namespace whence::read
