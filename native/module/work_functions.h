// work_functions.h: work of lowered programs, and the tables and line maps that explain it, for
// Python.
//
// Threads: holders of the GIL. Allocates: names, at first sight.
// Fails by: TypeError, OverflowError and ValueError for wrong arguments; work that cannot be kept
// is counted, and no error.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef work_functions[];

}  // namespace whence::module
