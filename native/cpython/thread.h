// thread.h: whose frames may this thread read?
//
// Threads: any, Python's or not, with the GIL or without; never blocks.
// Allocates: never.
// Fails by: nullptr, which means: no Python part.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>

#include "cpython/frames.h"

namespace whence::cpython {

namespace detail {
extern std::atomic<PyInterpreterState*> main_interpreter;
}

// Remembers the main interpreter, the only one whose frames are read. Called when the module is
// loaded.
void remember_main_interpreter() noexcept;

[[nodiscard]] inline bool is_main(const PyInterpreterState* interpreter) noexcept {
  return interpreter == detail::main_interpreter.load(std::memory_order_relaxed);
}

// This thread's state if it is attached to the main interpreter right now, else nullptr.
[[nodiscard]] PyThreadState* attached_state() noexcept;

// This thread's state of the main interpreter whether it is attached or not: with it, its frames,
// which stand still while it is not. Not while the interpreter ends.
[[nodiscard]] PyThreadState* own_state() noexcept;

// The same as attached_state() for a caller that Python itself has called, and that therefore is
// attached.
[[nodiscard]] inline PyThreadState* calling_state() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

// visit(innermost frame, the system's number) for each thread of the main interpreter. Under the
// GIL: the others wait for it, and their frames stand still.
template <class Visit>
void for_each_thread(Visit&& visit) {
  PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  for (; state != nullptr; state = PyThreadState_Next(state)) {
    const auto os_id = static_cast<std::uint32_t>(state->native_thread_id);
    if (os_id != 0) visit(innermost(state), os_id);
  }
}

}  // namespace whence::cpython
