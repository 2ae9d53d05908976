// rewrite.h: a recording as a new file of the compact layout: packed, or freed of what is damaged.
//
// Threads: any; only arguments are touched. Allocates: as a Loader, and one chunk more.
// Fails by: Rewritten::error, an errno; `aborted` by a callback; std::bad_alloc.
//
// The new file is closed, or has ended early if the old one had; or was never closed, like the old
// one, if nobody is to be told otherwise. What the old one lost, and what
// turns out to be lost now, is counted in its header; the journal is resolved.
#pragma once

#include <cstdint>
#include <vector>

#include "read/symbol_chunks.h"
#include "read/totals.h"

namespace whence::read {

struct Pack {
  // Puts the packed payload into `out`; false stops everything.
  bool (*call)(void* context, std::span<const std::uint8_t> payload,
               std::vector<std::uint8_t>& out) = nullptr;
  void* context = nullptr;
};

struct RewriteOptions {
  Pack pack;               // without one, chunks are stored as they are
  std::uint64_t keep = 0;  // nanoseconds before the last event; 0: everything. What is older counts
                           // as overwritten by the ring
  const SymbolChunks* symbols = nullptr;  // to be added
  bool close = true;                      // false: only if the old one is
};

struct Rewritten {
  int error = 0;
  bool aborted = false;
  std::uint64_t size = 0;  // of the new file
  Totals totals;
};

// `file` is empty and can be written to.
[[nodiscard]] Rewritten rewrite(const Source& source, int file, const RewriteOptions& options);

}  // namespace whence::read
