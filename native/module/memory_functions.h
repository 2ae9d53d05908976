// memory_functions.h: recording of memory for Python.
//
// Threads: holders of the GIL. Allocates: never. Fails by: TypeError for wrong arguments; else by a
// reason.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef memory_functions[];

}  // namespace whence::module
