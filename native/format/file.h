// file.h: the header of a recording, and the reasons for which things are lost or end.
//
// Threads: plain data; store/ and read/ say who touches it when. Allocates: never.
// Fails by: check functions that return false.
//
// FORMAT.md has the byte offsets; the assertions below hold this file to them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace whence::format {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

inline constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'W', 'H', 'N', 'C', '\r', '\n', 0x1A};
inline constexpr std::uint16_t kMajor = 1;
inline constexpr std::uint16_t kMinor = 0;

inline constexpr std::uint32_t kSmallestChunk = 4096;
inline constexpr std::uint32_t kDefaultChunk = 256 * 1024;
inline constexpr std::uint32_t kLargestChunk = 16 * 1024 * 1024;

// `fixed`: chunk i lies at header_size + i * chunk_size; what a recorder writes.
// `compact`: chunks follow each other, each as long as its header says; what a copy has.
enum class Layout : std::uint32_t { fixed = 0, compact = 1 };

enum class FileState : std::uint32_t { recording = 1, closed = 2, ended = 3 };

// Why an event was dropped, or why a recording ended early. Numbers are for ever.
enum class Reason : std::uint32_t {
  none = 0,
  ring = 1,        // overwritten by newer events
  disk = 2,        // no space left
  quota = 3,       // the user's quota is used up
  io = 4,          // any other failure of the file system
  memory = 5,      // no memory, or no address space
  file_limit = 6,  // the process may not write larger files
  limit = 7,       // no chunk could be had within max_size
  too_large = 8,   // a record larger than a chunk
  finalizing = 9,  // the interpreter was shutting down
  fork = 10,       // this process is a child of the recorded one
  internal = 11,   // a failure of whence itself
  damaged = 12,    // found by a reader: bytes that do not agree with their checksum
  hook_replaced = 13,
  unknown_layout = 14,
  tool_id_taken = 15,
};
inline constexpr std::size_t kReasons = 16;
[[nodiscard]] const char* reason_name(Reason reason) noexcept;

// Taking a chunk out of the ring happens in three steps, and a kill may come between any two:
// the journal is written, the chunk is freed, the next journal builds on this one's `after`. A
// reader that still finds chunk `index` with `sequence` counts `before`, else `after`.
struct RingJournal {
  std::uint64_t index;     // of the chunk, plus one; 0: nothing was ever overwritten
  std::uint64_t sequence;  // of what it held
  std::uint64_t before;    // events overwritten until then
  std::uint64_t after;     // the same with those of this chunk
};

struct FileHeader {
  std::array<std::uint8_t, 8> magic;
  std::uint16_t major, minor;
  std::uint32_t header_size;
  std::array<std::uint8_t, 16> file_id;
  std::uint32_t chunk_size;
  Layout layout;
  std::uint32_t clock;  // base::ClockKind
  std::uint32_t pid;
  std::uint64_t ticks_per_second;  // an estimate
  std::uint64_t start_ticks, start_monotonic, start_wall;
  std::uint64_t max_size, keep;  // bytes, nanoseconds; 0: no bound
  std::array<std::uint8_t, 28> reserved;
  std::uint32_t opening_checksum;  // of everything above

  FileState state;
  Reason reason;       // why it ended early
  std::int32_t error;  // the errno behind it, or 0
  std::uint32_t unused;
  std::uint64_t end_ticks, end_monotonic;
  RingJournal journal;
  std::array<std::uint64_t, kReasons> dropped;  // events, by reason
  std::uint64_t names_lost;                     // names that found no room; their events have none
  // Of a recording that has ended, so that a reader can tell what is missing; 0: not known.
  std::uint64_t produced;  // events in all
  std::uint64_t chunks;    // that are open or sealed
  std::array<std::uint8_t, 164> reserved_too;
  std::uint32_t closing_checksum;  // of everything from `state` on; 0 until it is closed
};

static_assert(offsetof(FileHeader, file_id) == 16 && offsetof(FileHeader, chunk_size) == 32);
static_assert(offsetof(FileHeader, ticks_per_second) == 48 && offsetof(FileHeader, max_size) == 80);
static_assert(offsetof(FileHeader, opening_checksum) == 124 && offsetof(FileHeader, state) == 128);
static_assert(offsetof(FileHeader, journal) == 160 && offsetof(FileHeader, dropped) == 192);
static_assert(offsetof(FileHeader, names_lost) == 320 && offsetof(FileHeader, produced) == 328 &&
              sizeof(FileHeader) == 512);

void seal_opening(FileHeader& header) noexcept;
void seal_closing(FileHeader& header) noexcept;

enum class HeaderCheck { good, not_a_recording, too_new, damaged };
// `damaged` only for the opening part, without which nothing can be read.
[[nodiscard]] HeaderCheck check_header(const FileHeader& header) noexcept;
// False if the file was closed and its closing part has changed since.
[[nodiscard]] bool closing_is_good(const FileHeader& header) noexcept;

}  // namespace whence::format
