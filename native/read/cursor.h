// cursor.h: the records of a recording, one after the other.
//
// Threads: a cursor belongs to one. Allocates: as a Loader; one chunk is in memory at a time.
// Fails by: Next; what is damaged is stepped over (see totals.h for what that was).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/decode.h"
#include "read/loader.h"
#include "read/slice.h"

namespace whence::read {

enum class Select { all, metadata, events };
[[nodiscard]] constexpr bool is_selected(const Entry& entry, Select select) noexcept {
  return select == Select::all ||
         (select == Select::metadata) == (entry.what == format::ChunkClass::metadata);
}

enum class Next { record, end, aborted };

class Cursor {
 public:
  // After the deadline of a slice, no further chunk is begun.
  Cursor(const Source& source, Select select, std::uint64_t deadline = kNoDeadline) noexcept
      : source_(source), loader_(source), select_(select), deadline_(deadline) {}

  // The record is valid until the next call.
  [[nodiscard, gnu::always_inline]] Next next(format::Record& record) {
    if (decoder_.has_value() && decoder_->next(record) == format::Step::record) [[likely]]
      return Next::record;
    return next_chunk(record);
  }
  // Of the chunk that is being read; nullptr: none is.
  [[nodiscard]] format::Decoder* decoder() noexcept {
    return decoder_.has_value() ? &*decoder_ : nullptr;
  }
  // Counts chunks: another number, another chunk.
  [[nodiscard]] std::size_t place() const noexcept { return next_entry_; }
  // No chunk is begun that was written from these ticks on.
  void stop_at(std::uint64_t ticks) noexcept { stop_ticks_ = ticks; }
  // Has a deadline ended it before the end? Then all events before these ticks were read.
  [[nodiscard]] std::optional<std::uint64_t> stopped_at() const noexcept { return stopped_at_; }

 private:
  [[nodiscard]] Next next_chunk(format::Record& record);

  const Source& source_;
  Loader loader_;
  Select select_;
  std::uint64_t deadline_;
  std::optional<std::uint64_t> stop_ticks_;
  std::optional<std::uint64_t> stopped_at_;
  std::size_t next_entry_ = 0;
  Chunk chunk_{};
  std::optional<format::Decoder> decoder_;
};

}  // namespace whence::read
