// thread.h: whose frames may this thread read?
//
// Threads: any, Python's or not, with the GIL or without; never blocks.
// Allocates: never.
// Fails by: nullptr, which means: no Python part.
#pragma once

#include <Python.h>

namespace whence::cpython {

// Remembers the main interpreter, the only one whose frames are read. Called when the module is
// loaded.
void remember_main_interpreter() noexcept;

// This thread's state if it is attached to the main interpreter right now, else nullptr.
[[nodiscard]] PyThreadState* attached_state() noexcept;

// The same for a caller that Python itself has called, and that therefore is attached.
[[nodiscard]] PyThreadState* calling_state() noexcept;

}  // namespace whence::cpython
