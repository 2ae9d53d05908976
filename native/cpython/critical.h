// critical.h: what the GIL does for an object's methods, on builds that have none.
//
// Threads: attached ones. Allocates: never. Fails by: it cannot.
//
// With the GIL this is nothing: methods that give it up say so themselves.
#pragma once

#include <Python.h>

namespace whence::cpython {

// Is there but one attached thread at a time?
#ifdef Py_GIL_DISABLED
inline constexpr bool kOneAtATime = false;
#else
inline constexpr bool kOneAtATime = true;
#endif

class [[nodiscard]] Critical {
 public:
#ifdef Py_GIL_DISABLED
  explicit Critical(PyObject* object) noexcept { PyCriticalSection_Begin(&section_, object); }
  ~Critical() { PyCriticalSection_End(&section_); }
#else
  explicit Critical(PyObject*) noexcept {}
#endif
  Critical(const Critical&) = delete;
  Critical& operator=(const Critical&) = delete;

 private:
#ifdef Py_GIL_DISABLED
  PyCriticalSection section_;
#endif
};

// A method of an object, one thread at a time.
template <PyObject* (*kMethod)(PyObject*, PyObject*)>
PyObject* one_at_a_time(PyObject* self, PyObject* argument) {
  const Critical critical(self);
  return kMethod(self, argument);
}

}  // namespace whence::cpython
