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
  switch (format::check_header(header_)) {
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
  if (input_.size() < header_.header_size) {
    problems_.add(input_.size(), "the file ends within its header");
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
    if (header.state == static_cast<std::uint32_t>(ChunkState::free)) {
      // What is in a chunk that is cut is reported when it is read. One that has never been used is
      // the last, and may be as far as its recorder came with making it.
      const bool was_used = header.magic != 0 || header.sequence != 0;
      if (!metadata_only && was_used && cuts_chunk(offset)) problems_.add(offset, kCutShort);
      continue;
    }
    if (!metadata_only) {
      list_one(header, offset);
      continue;
    }
    // The first listing went through the file in this order too.
    const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(before);
    const auto known = std::lower_bound(
        entries_.begin(), end, offset,
        [](const Entry& entry, std::uint64_t wanted) { return entry.offset < wanted; });
    const bool listed =
        known != end && known->offset == offset && known->sequence == header.sequence;
    if (!listed && header.what == format::ChunkClass::metadata && fault_of(header) == nullptr) {
      list_one(header, offset);
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
    list_one(header, offset);
    if (!format::closing_is_good(header)) {  // which says where the next one is
      if (offset + sizeof header < input_.size()) {
        problems_.add(offset, "nothing after this chunk can be found");
      }
      return;
    }
    packed_ = packed_ || header.coding != format::Coding::plain;
    offset += sizeof header + header.stored;
  }
}

// What is wrong with the header of a chunk that is not free, or nullptr.
const char* Source::fault_of(const ChunkHeader& header) const noexcept {
  constexpr const char* kDamaged = "the header of a chunk is damaged";
  if (!format::opening_is_good(header, file_id())) return kDamaged;
  const auto state = static_cast<ChunkState>(header.state);
  if (state != ChunkState::open && state != ChunkState::sealed) {
    return "a chunk is neither open nor sealed";
  }
  if (state == ChunkState::sealed ? !format::closing_is_good(header) : compact()) return kDamaged;
  if (header.what != format::ChunkClass::events && header.what != format::ChunkClass::metadata) {
    return "a chunk is neither of events nor of metadata";
  }
  return nullptr;
}

void Source::list_one(const ChunkHeader& header, std::uint64_t offset) {
  if (const char* fault = fault_of(header)) return damaged(header, offset, fault);
  entries_.push_back({header.sequence, offset, header.committed, header.what,
                      static_cast<ChunkState>(header.state), header.thread, header.start_ticks});
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
