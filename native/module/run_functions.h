// run_functions.h: for a program that runs within ours, so that it is like one that runs by itself.
//
// Threads: holders of the GIL. Allocates: never. Fails by: Python's error.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef run_functions[];

}  // namespace whence::module
