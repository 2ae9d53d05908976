// inlined_call.h: whence.handles.InlinedCall, one call of a list of calls.
//
// Threads: holders of the GIL. Allocates: the object. Fails by: Python's error.
//
// A list may be of any length, and is never walked by recursion. Each call knows the hash of all
// that it leads to: two that differ are told apart at once, and a hash costs nothing.
#pragma once

#include <Python.h>

#include <cstdint>

namespace whence::module {

struct InlinedCallObject {
  PyObject_HEAD
  PyObject* function;  // exactly a str
  PyObject* range;     // this and the others may be nullptr
  PyObject* type;
  PyObject* instance;
  InlinedCallObject* callee;
  std::uint64_t hash;
  Py_ssize_t depth;  // this call and all further in
};

[[nodiscard]] inline InlinedCallObject* as_call(PyObject* object) noexcept {
  return reinterpret_cast<InlinedCallObject*>(object);
}

// The types of the arguments are known to be right; nullptr stands for None.
struct CallFields {
  PyObject* function;
  PyObject* range;
  PyObject* type;
  PyObject* instance;
  InlinedCallObject* callee;
};

// A new reference.
[[nodiscard]] PyObject* make_call(PyTypeObject* type, const CallFields& fields) noexcept;

}  // namespace whence::module
