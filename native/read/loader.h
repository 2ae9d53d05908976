// loader.h: one chunk of a recording at a time, checked.
//
// Threads: a loader belongs to one. Allocates: three buffers, each as large as a chunk at most.
// Fails by: Loaded; std::bad_alloc.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "read/source.h"

namespace whence::read {

enum class Loaded {
  good,
  damaged,  // `why` says it
  taken,    // by the ring of a live recorder, since the recording was opened
  aborted,  // unpacking said so
};

struct Chunk {
  format::ChunkHeader header;
  std::span<const std::uint8_t> payload;  // until the next load
  std::uint32_t claimed;                  // events, as the header has them
  const char* why;                        // damaged; or good, but shorter than it should be
};

class Loader {
 public:
  explicit Loader(const Source& source) noexcept : source_(source) {}
  [[nodiscard]] Loaded load(const Entry& entry, Chunk& chunk);
  // The bytes of the chunk that was loaded last, for whoever needs its payload for longer.
  [[nodiscard]] std::vector<std::uint8_t> take_payload() noexcept { return std::move(payload_); }

 private:
  [[nodiscard]] Loaded load_fixed(const Entry& entry, Chunk& chunk);
  [[nodiscard]] Loaded load_compact(const Entry& entry, Chunk& chunk);
  [[nodiscard]] Loaded load_plain(const Entry& entry, Chunk& chunk, std::uint32_t size);
  [[nodiscard]] Loaded load_packed(const Entry& entry, Chunk& chunk, std::uint32_t size);
  [[nodiscard]] Unpacked unpack_into(const format::ChunkHeader& header, std::size_t got,
                                     std::size_t& size);
  [[nodiscard]] std::size_t fetch(std::vector<std::uint8_t>& buffer, std::uint64_t offset,
                                  std::size_t size);

  const Source& source_;
  std::vector<std::uint8_t> payload_, packed_, recoded_;
};

}  // namespace whence::read
