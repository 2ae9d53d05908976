// totals.cpp: see totals.h.
#include "read/totals.h"

#include <algorithm>

namespace whence::read {

using format::Reason;

void Totals::drop(Reason reason, std::uint64_t events) noexcept {
  std::uint64_t& count = dropped[static_cast<std::size_t>(reason)];
  count = add_counts(count, events);
}

std::uint64_t Totals::produced() const noexcept {
  std::uint64_t sum = recorded;
  for (const std::uint64_t count : dropped) sum = add_counts(sum, count);
  return sum;
}

void count_chunk(Totals& totals, const Entry& entry, const Examined& found) {
  ++totals.chunks;
  totals.records += found.records;
  totals.unknown += found.unknown;
  totals.recorded += found.events;
  totals.drop(Reason::damaged, found.damaged);
  if (found.problem != nullptr) totals.problems.add(entry.offset, found.problem);
}

void count_damaged(Totals& totals, const Entry& entry, const Chunk& chunk) {
  ++totals.chunks_damaged;
  totals.problems.add(entry.offset, chunk.why);
  if (entry.state == format::ChunkState::sealed) totals.drop(Reason::damaged, chunk.claimed);
}

void count_taken(Totals& totals, const Entry& entry) noexcept {
  if (entry.what == format::ChunkClass::events) {
    totals.drop(Reason::ring, format::Committed::from(entry.committed).events);
  }
}

void count_header(Totals& totals, const Source& source) {
  totals.problems = source.problems();
  totals.chunks_damaged = source.chunks_damaged();
  if (source.closing_is_good()) {
    totals.dropped = source.header().dropped;
    totals.dropped[static_cast<std::size_t>(Reason::ring)] = source.ring_events();
    totals.names_lost = source.header().names_lost;
  }
  totals.drop(Reason::damaged, source.events_damaged());
}

void count_missing(Totals& totals, const Source& source) {
  const format::FileHeader& header = source.header();
  if (!source.closed()) return;
  const std::uint64_t known = totals.produced();
  if (header.produced > known) totals.drop(Reason::damaged, header.produced - known);
  if (header.produced > known || header.chunks > totals.chunks + totals.chunks_damaged) {
    totals.problems.add(header.header_size, "chunks are missing that were there at its end");
  }
}

Totals count(const Source& source) {
  Totals totals;
  count_header(totals, source);
  Loader loader(source);
  Chunk chunk;
  for (const Entry& entry : source.entries()) {
    switch (loader.load(entry, chunk)) {
      case Loaded::good: count_chunk(totals, entry, examine(chunk)); break;
      case Loaded::damaged: count_damaged(totals, entry, chunk); break;
      case Loaded::taken: count_taken(totals, entry); break;
      case Loaded::aborted: totals.aborted = true; return totals;
    }
  }
  count_missing(totals, source);
  return totals;
}

std::uint64_t last_ticks(const Source& source) {
  const format::FileHeader& file = source.header();
  if (source.closed()) return file.end_ticks;
  return std::max(file.start_ticks, last_chunk_ticks(source, Select::all));
}

std::uint64_t last_chunk_ticks(const Source& source, Select select) {
  std::uint64_t last = 0;
  Loader loader(source);
  Chunk chunk;
  for (const Entry& entry : source.entries()) {
    if (!is_selected(entry, select)) continue;
    format::ChunkHeader& header = chunk.header;
    const bool there = source.input().read(entry.offset, &header, sizeof header) == sizeof header;
    if (there && header.state == static_cast<std::uint32_t>(format::ChunkState::sealed)) {
      if (format::closing_is_good(header)) last = std::max(last, header.end_ticks);
    } else if (loader.load(entry, chunk) == Loaded::good) {
      last = std::max(last, examine(chunk).last_ticks);
    }
  }
  return last;
}

}  // namespace whence::read
