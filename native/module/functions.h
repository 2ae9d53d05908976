// functions.h: the functions of _core, as a table.
//
// Threads: holders of the GIL. Allocates: Python objects. Fails by: Python's error.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef functions[];

}  // namespace whence::module
