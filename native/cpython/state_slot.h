// state_slot.h: the state of the calling thread, read where CPython keeps it.
//
// Threads: those that Python has called. Allocates: never.
// Fails by: asking CPython each time, which takes longer.
//
// CPython keeps the current state in a thread-local variable that has no name for others. Asking
// for it is a call into its library, and from there one into the loader: half the time of an event.
// But a thread's copy of the variable stays where it is. So its place among CPython's thread-local
// variables is looked for once: a word that holds the state, and holds nothing while the GIL is
// given away. Each thread then remembers the address of its own copy, if that holds its state. On
// 3.11 the variable is no thread's own; own_slot.h is what helps there.
#pragma once

#include <Python.h>

#include "cpython/own_slot.h"
#include "cpython/thread.h"

namespace whence::cpython {

// Once, when the module is loaded. Gives the GIL away for a moment.
void find_state_slot() noexcept;
// Is it known? Only tests ask.
[[nodiscard]] bool state_slot_is_known() noexcept;

namespace detail {
[[gnu::tls_model("initial-exec")]] extern thread_local constinit PyThreadState* const* state_slot;
[[gnu::cold, gnu::noinline]] PyThreadState* state_without_slot() noexcept;
}  // namespace detail

// The same as attached_state().
[[nodiscard, gnu::always_inline]] inline PyThreadState* attached_state_quickly() noexcept;

// The same as calling_state().
[[nodiscard, gnu::always_inline]] inline PyThreadState* calling_state_quickly() noexcept {
  PyThreadState* const* slot = detail::state_slot;
  return slot != nullptr ? *slot : detail::state_without_slot();
}

inline PyThreadState* attached_state_quickly() noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  PyThreadState* state = calling_state_quickly();
  return state != nullptr && is_main(state->interp) ? state : nullptr;
#else
  if (!own_slot_is_known()) return attached_state();
  PyThreadState* state = calling_state();
  return state != nullptr && state == own_state_in_slot() && is_main(state->interp) ? state
                                                                                    : nullptr;
#endif
}

// A thread that asks for something, whether it holds the GIL or not. Two words, which go in
// registers: a third would send all of it by way of the stack, and as no processor forwards a load
// that spans two stores, whoever is called would wait for it.
struct Asker {
  PyThreadState* state = nullptr;  // own_state()
  bool attached = false;
};
static_assert(sizeof(Asker) == 2 * sizeof(void*));
[[nodiscard, gnu::always_inline]] inline Asker asker() noexcept {
  PyThreadState* state = attached_state_quickly();
  const bool attached = state != nullptr;
  return {attached ? state : own_state(), attached};
}

}  // namespace whence::cpython
