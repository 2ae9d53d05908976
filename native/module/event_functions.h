// event_functions.h: marks, counters, collections and threads for Python.
//
// Threads: holders of the GIL.
// Allocates: never, but for what store::write does.
// Fails by: TypeError for wrong arguments; an event that cannot be kept is counted, and no error.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef event_functions[];

}  // namespace whence::module
