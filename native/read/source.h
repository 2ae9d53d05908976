// source.h: a recording as an index of chunks.
//
// Threads: any, once open() has returned; but close() only while nobody reads.
// Allocates: an index of 48 bytes a chunk, at open(). Fails by: Opened; std::bad_alloc.
//
// The index is what the file held when it was opened: a live recorder that goes on changes neither
// what is listed nor how much of an open chunk counts. Metadata come first, and events that are in
// the index refer to nothing that is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/chunk.h"
#include "format/file.h"
#include "read/input.h"
#include "read/problems.h"

namespace whence::read {

// What the caller lends for chunks packed with zstd, which the native core does not have.
enum class Unpacked { good, bad, abort };
struct Unpack {
  // Fills `out` exactly, or says `bad`; `abort` stops whatever is going on. With `part`, only the
  // beginning of a frame is there: how many bytes that gives, from the beginning of `out` on.
  Unpacked (*call)(void* context, std::span<const std::uint8_t> packed, std::span<std::uint8_t> out,
                   std::size_t* part) = nullptr;
  void* context = nullptr;
};

inline constexpr const char* kCutShort = "the file ends within a chunk";

enum class Opened { good, not_a_recording, cut_short, too_new, damaged };

// What is added to all that a recording says, so that it can stand beside others.
struct Shifts {
  std::int64_t time = 0;     // nanoseconds
  std::uint32_t thread = 0;  // these three: to numbers that are not 0
  std::uint64_t task = 0;
  std::uint64_t generator = 0;
};

struct Entry {
  std::uint64_t sequence;
  std::uint64_t offset;
  std::uint64_t committed;
  format::ChunkClass what;
  format::ChunkState state;
  std::uint32_t thread;
  std::uint64_t start_ticks;  // later chunks by sequence never have an earlier one
};

class Source {
 public:
  Source(Input input, Unpack unpack, Shifts shifts = {}) noexcept
      : input_(input), unpack_(unpack), shifts_(shifts) {}

  [[nodiscard]] Opened open();
  void close() noexcept { input_.close(); }

  [[nodiscard]] const format::FileHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::uint64_t file_id() const noexcept;  // the half that chunks repeat
  [[nodiscard]] std::uint32_t largest_payload() const noexcept {
    return header_.chunk_size - static_cast<std::uint32_t>(sizeof(format::ChunkHeader));
  }
  [[nodiscard]] bool compact() const noexcept { return header_.layout == format::Layout::compact; }
  // Might a recorder still be writing to it?
  [[nodiscard]] bool live() const noexcept {
    return header_.state != format::FileState::closed && header_.closing_checksum == 0 &&
           !compact();
  }
  // Was it closed, so that the closing part says how it ended?
  [[nodiscard]] bool closed() const noexcept {
    return header_.state != format::FileState::recording && header_.closing_checksum != 0 &&
           closing_is_good_;
  }
  // Of the fixed layout: does the file end within the chunk there? Maybe behind its last record.
  [[nodiscard]] bool cuts_chunk(std::uint64_t offset) const noexcept {
    return !compact() && input_.size() - offset < header_.chunk_size;
  }
  // False: nothing that the closing part says can be believed.
  [[nodiscard]] bool closing_is_good() const noexcept { return closing_is_good_; }
  [[nodiscard]] bool packed() const noexcept { return packed_; }
  [[nodiscard]] const Input& input() const noexcept { return input_; }
  [[nodiscard]] const Unpack& unpack() const noexcept { return unpack_; }
  [[nodiscard]] const Shifts& shifts() const noexcept { return shifts_; }

  // In the order of reading: metadata, then events, each by their sequence. As they are written:
  // nothing is shifted here.
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

  // What was found while listing, and how many events and chunks went with it.
  [[nodiscard]] const Problems& problems() const noexcept { return problems_; }
  [[nodiscard]] std::uint64_t events_damaged() const noexcept { return events_damaged_; }
  [[nodiscard]] std::uint64_t chunks_damaged() const noexcept { return chunks_damaged_; }

  // Events that the ring has taken until now, whatever a kill came in between.
  [[nodiscard]] std::uint64_t ring_events() const noexcept;

 private:
  void list_fixed(bool metadata_only);
  void list_compact();
  void list_one(const format::ChunkHeader& header, std::uint64_t offset);
  [[nodiscard]] const char* fault_of(const format::ChunkHeader& header) const noexcept;
  void damaged(const format::ChunkHeader& header, std::uint64_t offset, const char* what);

  Input input_;
  Unpack unpack_;
  Shifts shifts_;
  format::FileHeader header_{};
  bool closing_is_good_ = false;
  bool packed_ = false;
  std::vector<Entry> entries_;
  Problems problems_;
  std::uint64_t events_damaged_ = 0;
  std::uint64_t chunks_damaged_ = 0;
};

}  // namespace whence::read
