// chunk.h: the header of a chunk.
//
// Threads: plain data; the two words that change under a reader are touched through the functions
// here.
// Allocates: never. Fails by: check functions that return false.
//
// A chunk is opened, filled and sealed. `state` is what a reader believes first:
//
//      free --(header written, opening checksum)--> open --(payload checksum, closing)--> sealed
//        ^------------------------- the ring takes it --------------------------------------'
//
// Of an open chunk the first `bytes` of its payload count; nothing has to happen at a crash.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace whence::format {

enum class ChunkState : std::uint32_t { free = 0, open = 1, sealed = 2 };
enum class ChunkClass : std::uint32_t { events = 1, metadata = 2 };
// The last is zstd of what recode() makes of the payload; see recent_addresses.h.
enum class Coding : std::uint32_t { plain = 0, zstd = 1, recoded_zstd = 2 };

inline constexpr std::uint32_t kChunkMagic = 0x4B484357;  // "WCHK"

// How much of a chunk is there, in one word: bytes in the low half, events in the high half.
struct Committed {
  std::uint32_t bytes, events;
  [[nodiscard]] static constexpr Committed from(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  [[nodiscard]] constexpr std::uint64_t word() const noexcept {
    return std::uint64_t{events} << 32 | bytes;
  }
};
inline constexpr std::uint64_t kOneEvent = std::uint64_t{1} << 32;

struct ChunkHeader {
  std::uint32_t magic;
  std::uint32_t state;     // ChunkState
  std::uint64_t file_id;   // the first half of the file's
  std::uint64_t sequence;  // one more than the chunk opened before it, in the whole file
  ChunkClass what;
  std::uint32_t thread;       // whose events these are; 0 for metadata
  std::uint64_t first_event;  // events of this thread before this chunk, kept or not
  std::uint64_t start_ticks, start_monotonic;
  std::uint32_t reserved;
  std::uint32_t opening_checksum;  // of everything above, with `state` as 0

  std::uint64_t committed;  // see Committed
  std::uint64_t end_ticks, end_monotonic;
  std::uint32_t stored;            // bytes that follow this header, in the compact layout
  Coding coding;                   // of those
  std::uint32_t payload_checksum;  // of the payload as it was written, not as it is stored
  std::uint32_t recoded;           // bytes that are packed, if the payload was recoded; else 0
  std::array<std::uint8_t, 20> reserved_too;
  std::uint32_t closing_checksum;  // of everything from `committed` on, once sealed
};

static_assert(offsetof(ChunkHeader, sequence) == 16 && offsetof(ChunkHeader, first_event) == 32);
static_assert(offsetof(ChunkHeader, opening_checksum) == 60);
static_assert(offsetof(ChunkHeader, committed) == 64 && offsetof(ChunkHeader, stored) == 88);
static_assert(offsetof(ChunkHeader, closing_checksum) == 124 && sizeof(ChunkHeader) == 128);

void seal_opening(ChunkHeader& header) noexcept;
void seal_closing(ChunkHeader& header) noexcept;
[[nodiscard]] bool opening_is_good(const ChunkHeader& header, std::uint64_t file_id) noexcept;
[[nodiscard]] bool closing_is_good(const ChunkHeader& header) noexcept;

// Stores that a reader, in this process or after its death, may rely on in this order: a kill comes
// between two instructions, so what the compiler keeps in order stays in order.
inline void publish_state(ChunkHeader& header, ChunkState state) noexcept {
  std::atomic_ref(header.state).store(static_cast<std::uint32_t>(state), std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
[[gnu::always_inline]] inline void publish_committed(std::uint64_t& place,
                                                     std::uint64_t word) noexcept {
  std::atomic_ref(place).store(word, std::memory_order_release);
}
[[nodiscard]] inline Committed read_committed(ChunkHeader& header) noexcept {
  return Committed::from(std::atomic_ref(header.committed).load(std::memory_order_acquire));
}

}  // namespace whence::format
