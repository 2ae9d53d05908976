// kind.h: what a record looks like, told by its first byte.
//
// Threads: constants. Allocates: never. Fails by: it cannot.
//
//      kind byte   n n n i i i i i       n = 0 .. 6: that many varints follow
//                                        n = 7: a varint follows, and as many bytes as it says
//
// So a reader can step over a kind that it has never heard of. A kind names its fields and their
// types; with that, one decoder reads them all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace whence::format {

enum class Field : std::uint8_t {
  number,      // as it is
  signed_,     // zigzag
  real,        // the bits of a double, bytes reversed: round values are short
  time,        // ticks since the record before it in the chunk, or since the chunk's start
  duration,    // ticks
  span,        // zigzag, relative to the span begun last in the chunk
  address,     // its low four bits on top, as most are 0; zigzag, relative to the one before it
  generator,   // zigzag, relative to the generator before it in the chunk
  string,      // the number of a string; 0: none, or lost
  code,        // the number of a code entry
  stack,       // the number of a stack
  near_stack,  // the same; zigzag, relative to the near_stack before it in the chunk
  thread,
  task,  // zigzag, relative to the task before it in the chunk
  reason,
  bytes,  // the rest of the body; last, and only in kinds with n = 7
};

struct FieldInfo {
  const char* name;
  Field type;
};

inline constexpr std::size_t kMostFields = 6;
inline constexpr unsigned kBody = 7;  // n of kinds that carry a length

struct Kind {
  std::uint8_t code;
  const char* name;
  bool event;  // has a fate: recorded or dropped. The others say what events mean
  std::array<FieldInfo, kMostFields> fields;

  [[nodiscard]] constexpr std::size_t count() const noexcept {
    std::size_t n = 0;
    while (n < kMostFields && fields[n].name != nullptr) ++n;
    return n;
  }
};

[[nodiscard]] constexpr unsigned shape_of(std::uint8_t code) noexcept {
  return code >> 5;
}

// What deltas in a chunk are relative to. Starts with the chunk's start time and zeros.
struct Deltas {
  std::uint64_t time = 0;
  std::uint64_t generator = 0;
  std::uint64_t span = 0;
  std::uint64_t address = 0;
  std::uint64_t task = 0;
  std::uint64_t stack = 0;

  // Another thread goes on: nothing of what this one has told holds, but the time.
  constexpr void start_over() noexcept { *this = {.time = time}; }
};

// The longest record without a body: a kind byte and six varints of ten bytes, rounded up.
inline constexpr std::size_t kLongestCompact = 64;

}  // namespace whence::format
