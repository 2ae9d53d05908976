// frames_public.h: the same walk through CPython's public frame API. Slower, and right on every
// interpreter.
//
// Threads: the thread whose frames they are, attached.
// Allocates: CPython makes a frame object for each frame, which may run the garbage collector.
// Fails by: ending early. The pending exception is untouched.
#pragma once

#include <Python.h>

#include <cstdint>

namespace whence::cpython {

struct PublicFrame {
  PyCodeObject* code;  // borrowed: the running frame keeps it alive
  std::int32_t offset;
};

// Calls visit(PublicFrame) for each frame, innermost first, until it returns false.
template <class Visit>
void walk_public(PyThreadState* state, Visit&& visit);

}  // namespace whence::cpython

#include "cpython/pending.h"
#include "cpython/ref.h"

namespace whence::cpython {

template <class Visit>
void walk_public(PyThreadState* state, Visit&& visit) {
  const PendingAside aside;
  Ref<PyFrameObject> frame(PyThreadState_GetFrame(state));
  while (frame) {
    const Ref<PyCodeObject> code(PyFrame_GetCode(frame.get()));
    if (!visit(PublicFrame{code.get(), PyFrame_GetLasti(frame.get())})) return;
    frame = Ref<PyFrameObject>(PyFrame_GetBack(frame.get()));
  }
}

}  // namespace whence::cpython
