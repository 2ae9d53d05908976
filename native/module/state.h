// state.h: what one _core module object owns. There is no other Python state in the native core.
//
// Threads: holders of the GIL. Allocates: in module.cpp, when the module is loaded. Fails by:
// Python's error.
#pragma once

#include <Python.h>

#include "module/handle_types.h"

namespace whence::module {

struct State {
  PyTypeObject* stack_type;
  PyTypeObject* span_type;
  PyObject* spare_span;
  PyTypeObject* reader_type;
  PyTypeObject* reader_iterator_type;
  PyTypeObject* frame_type;  // whence.Frame, a named tuple
  PyObject* skip;            // interned argument names
  PyObject* limit;
  PyObject* native;
  PyObject* origin;
  PyObject* on_long_span;  // called after a span that took long; nullptr: none is
  HandleTypes handles;
  bool is_main;             // of the main interpreter, the only one whose frames are read
  const char* walk_reason;  // why frames are walked by the public API; nullptr if they are not
};

[[nodiscard]] inline State& state_of(PyObject* module) noexcept {
  return *static_cast<State*>(PyModule_GetState(module));
}

}  // namespace whence::module
