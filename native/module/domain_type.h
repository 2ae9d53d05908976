// domain_type.h: whence.memory.Domain, the type, and the tags of a thread.
//
// Threads: holders of the GIL. Allocates: the object. Fails by: Python's error, for wrong arguments
// and for a domain too many; events raise nothing.
#pragma once

#include <Python.h>

namespace whence::module {

// A new reference.
[[nodiscard]] PyTypeObject* make_domain_type(PyObject* module) noexcept;

extern PyMethodDef tag_functions[];

}  // namespace whence::module
