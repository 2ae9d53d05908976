// call_functions.h: recording of calls for Python.
//
// Threads: holders of the GIL. Allocates: as probes/calls_control.h. Fails by: TypeError for wrong
// arguments; else by a reason.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef call_functions[];

}  // namespace whence::module
