// trace_hooks.h: the profile and trace functions of threads, for what the evaluation hook of 3.11
// does not see: calls of C functions, and exceptions.
//
// Threads: holders of the GIL. Allocates: never. Fails by: leaving a thread out.
//
// A thread has one function of each kind. One that is there is left alone: the events of that
// thread are missing then. Ours raise nothing and return 0.
#pragma once

#include <Python.h>

namespace whence::cpython {

// Either may be nullptr.
void hook_thread(PyThreadState* state, Py_tracefunc profile, Py_tracefunc trace) noexcept;
void hook_all_threads(Py_tracefunc profile, Py_tracefunc trace) noexcept;
// Takes these out, where they still are.
void unhook_all_threads(Py_tracefunc profile, Py_tracefunc trace) noexcept;

// What `except` is at work on, borrowed, or nullptr.
[[nodiscard]] PyObject* handled_exception() noexcept;

}  // namespace whence::cpython
