// c_calls.h: calls of functions that are written in C, by Python code that is recorded.
//
// Threads: the one that calls, attached. Allocates: at first sight of a name.
// Fails by: leaving the call out; its end is then left out by the reader.
//
// A name is put together anew for each call. Nothing about a function can be remembered by its
// address: it may be gone, and another may be there.
#pragma once

#include <Python.h>

#include "cpython/frames.h"

namespace whence::probes {

// Is it one whose calls are recorded? Classes and other callables are not.
[[nodiscard]] bool is_c_function(PyObject* callable) noexcept;

void c_called(const cpython::Frame* frame, PyObject* function) noexcept;
void c_left(const cpython::Frame* frame, bool by_exception) noexcept;

}  // namespace whence::probes
