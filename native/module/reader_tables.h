// reader_tables.h: methods of _core.Reader that go through all calls and give tables back.
//
// Threads: holders of the GIL, which unpacking may let go meanwhile.
// Allocates: what native/read/ says, and Python objects. Fails by: Python's error.
#pragma once

#include <Python.h>

#include "read/slice.h"

namespace whence::module {

// From (from, to, threads), each None or a value; false with Python's error set.
[[nodiscard]] bool read_slice(PyObject* args, read::Slice& slice);

// _core.Reader.tree
[[nodiscard]] PyObject* reader_tree(PyObject* reader, PyObject* args);

// _core.Reader.arrow_calls: a capsule with a stream, as the Arrow PyCapsule interface has it.
// arrow_stream.cpp
[[nodiscard]] PyObject* reader_arrow_calls(PyObject* reader, PyObject* args);

// _core.Reader.export_perfetto, .export_chrome. reader_export.cpp
[[nodiscard]] PyObject* reader_export_perfetto(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_export_chrome(PyObject* reader, PyObject* args);

}  // namespace whence::module
