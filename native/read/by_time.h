// by_time.h: the records of all threads, in the order of time.
//
// Threads: an instance belongs to one. Allocates: a chunk for each thread that ran at a time, up to
// a bound. Fails by: Next; what is damaged is stepped over; std::bad_alloc.
//
// Chunks are opened when the merge gets to where they begin, and closed when they are read. Each is
// in order; records of the same time come in the order of their chunks. A file may claim that
// thousands of chunks overlap: beyond the bound the earliest are read first, and what comes too
// late then happens at the time before it, and is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "format/decode.h"
#include "read/cursor.h"

namespace whence::read {

class ByTime {
 public:
  // After the deadline no further chunk is begun, and it ends where that one begins.
  explicit ByTime(const Source& source, std::uint64_t deadline = kNoDeadline);

  // The record is valid until the next call; its `time` never goes back.
  [[nodiscard]] Next next(format::Record& record);

  // What the thread has said about the record that was given last: a string; 0: nothing.
  [[nodiscard]] std::uint64_t tags() const noexcept { return current_->decoder.tags(); }
  // Records that came too late.
  [[nodiscard]] std::uint64_t disorder() const noexcept { return disorder_; }
  // As of a Cursor.
  [[nodiscard]] std::optional<std::uint64_t> stopped_at() const noexcept { return stopped_at_; }

 private:
  struct Place {
    std::uint64_t time;
    std::size_t chunk;  // its number in the index
    bool operator<(const Place& other) const noexcept {
      return time != other.time ? time < other.time : chunk < other.chunk;
    }
  };
  struct OpenChunk {
    std::vector<std::uint8_t> payload;
    format::Decoder decoder;
    format::Record record;  // the next one
    Place place;            // of it
  };
  enum class Due { opened, stopped, aborted };

  [[nodiscard]] static bool step(OpenChunk& chunk) noexcept;
  [[nodiscard]] bool is_due() const noexcept;
  [[nodiscard]] Due open_due();
  [[nodiscard]] Next switch_chunk(format::Record& record);
  void wait(std::unique_ptr<OpenChunk> chunk);
  void yield(format::Record& record) noexcept;

  const Source& source_;
  Loader loader_;
  std::uint64_t deadline_;
  std::size_t most_open_;
  std::vector<std::size_t> order_;                   // of chunks, by where they begin
  std::size_t next_ = 0;                             // the next of them
  std::vector<std::unique_ptr<OpenChunk>> waiting_;  // a heap, the earliest first
  std::unique_ptr<OpenChunk> current_;               // is read until `limit_`
  Place limit_{};
  std::uint64_t now_ = 0;
  std::uint64_t disorder_ = 0;
  std::optional<std::uint64_t> stopped_at_;
};

}  // namespace whence::read
