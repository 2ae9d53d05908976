// span_type.h: whence.span, the type.
//
// Threads: holders of the GIL. Allocates: the object, and its tags if it has any.
// Fails by: TypeError for wrong arguments. Nothing else raises, out of memory neither.
#pragma once

#include <Python.h>

namespace whence::module {

[[nodiscard]] PyTypeObject* make_span_type(PyObject* module) noexcept;
// A span that records nothing, for when there is no memory for another.
[[nodiscard]] PyObject* make_spare_span(PyTypeObject* type) noexcept;

// Calls `callback(name, nanoseconds)` after a span of at least this length; nullptr for none.
extern PyMethodDef span_functions[];

}  // namespace whence::module
