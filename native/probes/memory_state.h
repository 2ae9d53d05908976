// memory_state.h: what is in use now, written into the recording as a whole.
//
// Threads: any; threads that take memory meanwhile wait for a moment. Allocates: pages, for the
// time of the call. Fails by: counting what cannot be kept as dropped, like any event.
#pragma once

#include <cstdint>

namespace whence::probes {

[[nodiscard]] bool write_memory_state(std::uint32_t recording) noexcept;

}  // namespace whence::probes
