// c_api.h: the table behind whence.h.
//
// Threads: see whence.h, function by function. Allocates: stack_object() a Python object.
// Fails by: as whence.h says.
#pragma once

#include <Python.h>

namespace whence::module {

// A new capsule around the table.
[[nodiscard]] PyObject* make_c_api() noexcept;

}  // namespace whence::module
