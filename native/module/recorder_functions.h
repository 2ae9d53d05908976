// recorder_functions.h: start, stop and dump for Python.
//
// Threads: holders of the GIL. Allocates: results, through Python. Fails by: Python's error.
#pragma once

#include <Python.h>

namespace whence::module {

extern PyMethodDef recorder_functions[];

// A capsule with the table of system calls, for tests that let them fail.
[[nodiscard]] PyObject* make_system_capsule() noexcept;

}  // namespace whence::module
