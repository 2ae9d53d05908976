// frames_public.h: the same walk through CPython's public frame API. Slower, and right on every
// interpreter.
//
// Threads: the thread whose frames they are, attached.
// Allocates: CPython makes a frame object for each frame.
// Fails by: ending early and saying so. The pending exception is untouched.
#pragma once

#include <Python.h>

#include <cstdint>

namespace whence::cpython {

struct PublicFrame {
  PyCodeObject* code;  // borrowed: the running frame keeps it alive
  std::int32_t offset;
};

// Calls visit(PublicFrame) for each frame, innermost first, until it returns false. False if frames
// are missing because memory was.
template <class Visit>
[[nodiscard]] bool walk_public(PyThreadState* state, Visit&& visit);

}  // namespace whence::cpython

#include "cpython/pending.h"
#include "cpython/ref.h"

namespace whence::cpython {

// On 3.11 making a frame object may collect garbage, and finalizers would run under the caller's
// locks.
class [[nodiscard]] CollectorAside {
 public:
  CollectorAside() noexcept : was_enabled_(PyGC_Disable()) {}
  ~CollectorAside() {
    if (was_enabled_) PyGC_Enable();
  }
  CollectorAside(const CollectorAside&) = delete;
  CollectorAside& operator=(const CollectorAside&) = delete;

 private:
  const int was_enabled_;
};

template <class Visit>
bool walk_public(PyThreadState* state, Visit&& visit) {
  const PendingAside exception_aside;
  const CollectorAside collector_aside;
  Ref<PyFrameObject> frame(PyThreadState_GetFrame(state));
  // No first frame: either nothing runs, or there was no memory for it, of which no word is said.
  if (!frame) return PyEval_GetGlobals() == nullptr;
  while (frame) {
    const Ref<PyCodeObject> code(PyFrame_GetCode(frame.get()));
    if (!visit(PublicFrame{code.get(), PyFrame_GetLasti(frame.get())})) return true;
    frame = Ref<PyFrameObject>(PyFrame_GetBack(frame.get()));
  }
  return PyErr_Occurred() == nullptr;
}

}  // namespace whence::cpython
