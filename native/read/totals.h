// totals.h: what became of every event that a recording knows of.
//
// Threads: any; only arguments are touched. Allocates: as a Loader, and a list of problems.
// Fails by: `aborted`; std::bad_alloc.
//
//      produced = recorded + dropped, by reason
#pragma once

#include <array>
#include <cstdint>

#include "read/cursor.h"
#include "read/examine.h"

namespace whence::read {

struct Totals {
  std::uint64_t chunks = 0;          // that were read
  std::uint64_t chunks_damaged = 0;  // that could not be
  std::uint64_t records = 0;
  std::uint64_t unknown = 0;  // records of kinds that this version does not know
  std::uint64_t recorded = 0;
  std::array<std::uint64_t, format::kReasons> dropped{};
  std::uint64_t names_lost = 0;
  Problems problems;
  bool aborted = false;

  void drop(format::Reason reason, std::uint64_t events) noexcept;
  [[nodiscard]] std::uint64_t produced() const noexcept;
};

// Adds what one chunk gives. `why` is what a chunk is reported for that cannot be read.
void count_chunk(Totals& totals, const Entry& entry, const Examined& found);
void count_damaged(Totals& totals, const Entry& entry, const Chunk& chunk);
void count_taken(Totals& totals, const Entry& entry) noexcept;
// What the header says, and what was wrong with the list of chunks. Once, before the chunks.
void count_header(Totals& totals, const Source& source);
// Events that the header of a closed file knows of and that are nowhere. Once, after the chunks.
void count_missing(Totals& totals, const Source& source);

[[nodiscard]] Totals count(const Source& source);

// The last moment of which a recording knows, in ticks.
[[nodiscard]] std::uint64_t last_ticks(const Source& source);
// The end of its last chunk, whose end is in the header, or is the last record if it is open.
[[nodiscard]] std::uint64_t last_chunk_ticks(const Source& source, Select select);

}  // namespace whence::read
