// native_functions.h: native frames for Python: which ones a recording has, and their names.
//
// Threads: holders of the GIL. Allocates: Python objects, and std containers for a batch.
// Fails by: Python's error; a name that finds no room in the recording is counted there.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef native_functions[];

}  // namespace whence::module
