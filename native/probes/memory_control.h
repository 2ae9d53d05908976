// memory_control.h: recording of memory, turned on and off.
//
// Threads: holders of the GIL, which what starts and stops gives away for a moment: one at a time;
// leave_memory_to_parent() the only one there is.
// Allocates: never. Fails by: a reason.
#pragma once

#include <cstdint>
#include <optional>

#include "probes/memory.h"

namespace whence::probes {

struct MemoryWanted {
  Detail detail = Detail::alloc;
  std::uint32_t events = kTaken | kMoved | kGiven | kOutOfMemory | kSegments;
  bool all = false;     // also the C library's allocators, and mappings
  bool native = false;  // native frames in stacks
};

// Whoever else hooks into allocators has put back what he had found.
inline constexpr char kHookReplaced[] = "hook_replaced";
// What start_memory() says where frames can only be read through the public API.
inline constexpr char kNoStacks[] = "no_stacks";

// nullptr, or why not; kNoStacks: it is on, but no event has a stack. Again while it is on: with
// these wishes from now on.
[[nodiscard]] const char* start_memory(const MemoryWanted& wanted);
void pause_memory();
[[nodiscard]] const char* resume_memory();
// Does not matter whether it is on. nullptr, or why events are missing.
const char* stop_memory();

// What this thread takes while it answers a question of the program's is not recorded; what it
// gives back is. Whether it was answering one before.
bool set_answering(bool answering) noexcept;

// Where no history is kept: writes what is in use now into the recording. False: it was more than
// the ring holds, and has overwritten itself.
bool tell_memory_state() noexcept;
// There: the stack of the block that begins at this address, or of the mapping that it is in.
[[nodiscard]] std::optional<std::uint32_t> stack_in_use(std::uint64_t address) noexcept;

// In a forked child, as soon as there is one: nothing is recorded, and no lock is held.
void leave_memory_to_parent() noexcept;
// And when Python runs there: hooks are gone, too.
void forget_memory() noexcept;

}  // namespace whence::probes
