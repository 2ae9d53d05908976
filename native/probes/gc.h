// gc.h: runs of a garbage collector.
//
// Threads: any; the run itself is told by what begin() returned.
// Allocates: never, but for a thread's chunk. Fails by: 0 or false; the event is counted.
#pragma once

#include "format/records/gc.h"
#include "store/write.h"

namespace whence::probes {

// When it began, in ticks; to be given to gc_end().
inline std::uint64_t gc_begin(std::uint32_t recording, std::uint64_t generation) noexcept {
  return store::write<format::GcBegin>(recording, generation);
}

inline bool gc_end(std::uint32_t recording, std::uint64_t begun, std::uint64_t generation,
                   std::uint64_t collected, std::uint64_t uncollectable) noexcept {
  return store::write_with<format::GcEnd>(recording, [&](store::Cursor& cursor, std::uint64_t now) {
           const std::uint64_t duration = begun != 0 && now > begun ? now - begun : 0;
           return format::GcEnd::encode(cursor.next(), cursor.deltas, now, generation, collected,
                                        uncollectable, duration);
         }) != 0;
}

}  // namespace whence::probes
