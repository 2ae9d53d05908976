// examine.h: how much of a chunk is good, and how many events are in it.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: counts and `problem`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "read/loader.h"

namespace whence::read {

struct Examined {
  std::size_t good_bytes;  // of the payload, up to the first record that cannot be read
  std::uint64_t records;
  std::uint64_t unknown;     // records of kinds that this version does not know
  std::uint32_t events;      // that are there
  std::uint32_t damaged;     // events that are not, by what the header claims
  std::uint64_t last_ticks;  // of the last record with a time, or the start of the chunk
  const char* problem;       // nullptr if all is well
};

[[nodiscard]] Examined examine(const Chunk& chunk) noexcept;

}  // namespace whence::read
