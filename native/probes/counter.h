// counter.h: the value of a named quantity.
//
// Threads: any. Allocates: never, but for a thread's chunk. Fails by: false; the event is counted.
#pragma once

#include "format/records/counter.h"
#include "store/write.h"

namespace whence::probes {

inline bool counter(std::uint32_t recording, std::uint64_t name, std::int64_t value) noexcept {
  return store::write<format::Counter>(recording, name, value) != 0;
}

inline bool counter(std::uint32_t recording, std::uint64_t name, double value) noexcept {
  return store::write<format::RealCounter>(recording, name, value) != 0;
}

}  // namespace whence::probes
