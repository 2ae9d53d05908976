// layout.h: the frame layout of the interpreter this is built for.
//
// A free-threaded build keeps a copy of the bytecode per thread, so an instruction's address does
// not give its offset: it counts as unknown.
#pragma once

#include <Python.h>

#if defined(Py_GIL_DISABLED) || defined(WHENCE_FORGET_LAYOUTS)
#include "cpython/layout_unknown.h"
#elif PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include "cpython/layout_py311.h"
#elif PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
#include "cpython/layout_py312.h"
#elif PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include "cpython/layout_py313.h"
#elif PY_VERSION_HEX >= 0x030E0000 && PY_VERSION_HEX < 0x030F0000
#include "cpython/layout_py314.h"
#elif PY_VERSION_HEX >= 0x030F0000 && PY_VERSION_HEX < 0x03100000
#include "cpython/layout_py315.h"
#else
#include "cpython/layout_unknown.h"
#endif
