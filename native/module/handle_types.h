// handle_types.h: the types behind whence.handles, and what one _core module keeps of them.
//
// Threads: holders of the GIL. Allocates: the types, when the module is loaded. Fails by: Python's
// error.
//
//   HandleRecorder -> rows of SourceRange, str, InlinedCall
//   HandleSnapshot -> a recorder, and how many of its rows
//   HandleColumns  -> handles::Columns: what a file holds
//
// None of them can be part of a cycle: ranges and calls hold str, numbers and each other, are exact
// types and never change. So the collector need not know them, however many there are.
#pragma once

#include <Python.h>

namespace whence::module {

struct HandleTypes {
  PyTypeObject* range;
  PyTypeObject* call;
  PyTypeObject* snapshot;
  PyTypeObject* columns;
  PyObject* names[3];  // of the arguments of issue(): range, kind, stack
};

// Adds all of them to the module; false with an error set.
[[nodiscard]] bool add_handle_types(PyObject* module, HandleTypes& types) noexcept;
[[nodiscard]] int visit_handle_types(const HandleTypes& types, visitproc visit, void* arg) noexcept;
void release_handle_types(HandleTypes& types) noexcept;

// Each a new reference, or nullptr with an error set.
[[nodiscard]] PyTypeObject* make_range_type(PyObject* module) noexcept;
[[nodiscard]] PyTypeObject* make_call_type(PyObject* module) noexcept;
[[nodiscard]] PyTypeObject* make_recorder_type(PyObject* module) noexcept;
[[nodiscard]] PyTypeObject* make_snapshot_type(PyObject* module) noexcept;
[[nodiscard]] PyTypeObject* make_columns_type(PyObject* module) noexcept;

extern PyMethodDef handle_functions[];  // handle_files.cpp

}  // namespace whence::module
