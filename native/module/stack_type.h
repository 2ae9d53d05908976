// stack_type.h: whence.Stack, an immutable Python object around a stack id.
//
// Threads: holders of the GIL.
// Allocates: 32 bytes a stack; no garbage-collector header, because no cycle can pass through one.
// Fails by: nullptr with Python's error set.
//
// A live stack is an id and perhaps an origin. A detached one was made from frames (by unpickling)
// and carries them. It is the same type with a longer body, so that live ones stay small.
#pragma once

#include <Python.h>

#include "module/state.h"
#include "stacks/stack_table.h"

namespace whence::module {

struct StackObject {
  PyObject_HEAD
  stacks::StackId id;
  bool detached;
  PyObject* origin;  // another Stack, or nullptr
};

struct DetachedStack {
  StackObject head;
  PyObject* frames;  // a tuple of whence.Frame, innermost first
  Py_hash_t hash;
};

[[nodiscard]] PyTypeObject* make_stack_type(PyObject* module) noexcept;

// `origin` is borrowed and may be nullptr.
[[nodiscard]] PyObject* new_stack(PyTypeObject* type, stacks::StackId id,
                                  PyObject* origin) noexcept;
[[nodiscard]] PyObject* new_detached_stack(const State& state, PyObject* frames,
                                           PyObject* origin) noexcept;

[[nodiscard]] inline StackObject* as_stack(PyObject* object) noexcept {
  return reinterpret_cast<StackObject*>(object);
}
[[nodiscard]] inline DetachedStack* as_detached(PyObject* object) noexcept {
  return reinterpret_cast<DetachedStack*>(object);
}

}  // namespace whence::module
