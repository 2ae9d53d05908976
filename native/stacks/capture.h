// capture.h: the stack of this thread, now.
//
// Threads: any, under any lock of the caller's. Without an attached thread state the stack is
// empty.
// Allocates: at first sight of a code object, through PyMem; else only when tables grow, by mmap.
// Fails by: a truncated or empty stack. Never raises, never touches the pending exception.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>

#include "cpython/state_slot.h"
#include "stacks/stack_table.h"

namespace whence::stacks {

inline constexpr std::uint32_t kNoLimit = 0xFFFFFFFF;

// How frames are walked. `fast` follows CPython's own frames; `by_public_api` makes frame objects.
enum class Walk : std::uint8_t { by_public_api, fast };

void use_public_walk() noexcept;
// Runs the self-test and walks fast if it passes, by the public API if not. nullptr or the reason,
// as cpython::self_test() gives it, perhaps with an exception set; then nothing has changed.
[[nodiscard]] const char* use_fast_walk_if_trusted() noexcept;
[[nodiscard]] inline Walk walk_in_use() noexcept;
// Has the self-test passed, whichever walk is used?
[[nodiscard]] bool frames_are_trusted() noexcept;

// `skip` leaves out that many innermost frames; `limit` keeps at most that many of the others.
[[nodiscard]] StackId capture(PyThreadState* state, std::uint32_t skip,
                              std::uint32_t limit) noexcept;

// The same with native frames. `skip` counts Python frames, and native frames inside those are left
// out with them; on a thread without Python frames it counts native ones. `frame` is the native
// frame of the function that asks, where that is known: the stack begins outside it.
[[nodiscard, gnu::noinline]] StackId capture_mixed(cpython::Asker asker, const void* frame,
                                                   std::uint32_t skip,
                                                   std::uint32_t limit) noexcept;

namespace detail {
extern std::atomic<Walk> walk_now;
}
inline Walk walk_in_use() noexcept {
  return detail::walk_now.load(std::memory_order_relaxed);
}

}  // namespace whence::stacks
