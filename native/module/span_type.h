// span_type.h: whence.span, the type.
//
// Threads: holders of the GIL. Allocates: the object, and its tags if it has any.
// Fails by: Python's error when it is made; entering and leaving raise nothing.
#pragma once

#include <Python.h>

namespace whence::module {

[[nodiscard]] PyTypeObject* make_span_type(PyObject* module) noexcept;

// Calls `callback(name, nanoseconds)` after a span of at least this length; nullptr for none.
extern PyMethodDef span_functions[];

}  // namespace whence::module
