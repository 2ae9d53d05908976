// handle_columns.h: _core.HandleColumns, a loaded table that makes Python objects when asked.
//
// Threads: holders of the GIL; without one, a critical section on the object.
// Allocates: the objects that it is asked for, which it keeps. Fails by: Python's error.
#pragma once

#include <Python.h>

#include <vector>

#include "handles/columns.h"

namespace whence::module {

// Strings, ranges and calls are made once, so that stacks share what they have in common.
struct LoadedColumns {
  handles::Columns columns;
  std::vector<PyObject*> strings;  // these are empty until the first is asked for
  std::vector<PyObject*> ranges;
  std::vector<PyObject*> calls;
};

struct ColumnsObject {
  PyObject_HEAD
  PyObject* module;
  LoadedColumns* loaded;
};

[[nodiscard]] inline ColumnsObject* as_columns(PyObject* object) noexcept {
  return reinterpret_cast<ColumnsObject*>(object);
}

// A new reference. Also std::bad_alloc.
[[nodiscard]] PyObject* make_columns(PyObject* module, handles::Columns&& columns);
// None, or a str: the top type. A new reference.
[[nodiscard]] PyObject* top_of(PyObject* columns);

}  // namespace whence::module
