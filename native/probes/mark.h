// mark.h: a moment with a name.
//
// Threads: any. Allocates: never, but for a thread's chunk. Fails by: false; the event is counted.
#pragma once

#include "format/records/mark.h"
#include "store/write.h"

namespace whence::probes {

inline bool mark(std::uint32_t recording, std::uint64_t name) noexcept {
  return store::write<format::Mark>(recording, name) != 0;
}

}  // namespace whence::probes
