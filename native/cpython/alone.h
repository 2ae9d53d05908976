// alone.h: a call that sees no callers, as the first one of a thread sees none.
//
// Threads: the calling one, attached. Allocates: never. Fails by: it cannot; where frames are not
// described, nothing is hidden.
//
// What greenlets do for each of theirs: a frame that is entered while the thread state has no
// innermost frame is the outermost one. Its depth counts from 0, too.
#pragma once

#include <Python.h>

#include "cpython/frames.h"
#include "cpython/seen_code.h"

namespace whence::cpython {

namespace detail {

#if PY_VERSION_HEX >= 0x030D0000
using FramePointer = decltype(PyThreadState::current_frame);
inline FramePointer& innermost_of(PyThreadState* state) noexcept {
  return state->current_frame;
}
#else
using FramePointer = decltype(_PyCFrame::current_frame);
inline FramePointer& innermost_of(PyThreadState* state) noexcept {
  return state->cframe->current_frame;
}
#endif

#if PY_VERSION_HEX >= 0x030C0000
inline int depth_of(const PyThreadState* state) noexcept {
  return state->py_recursion_limit - state->py_recursion_remaining;
}
inline int& room_of(PyThreadState* state) noexcept {
  return state->py_recursion_remaining;
}
#else
inline int depth_of(const PyThreadState* state) noexcept {
  return state->recursion_limit - state->recursion_remaining;
}
inline int& room_of(PyThreadState* state) noexcept {
  return state->recursion_remaining;
}
#endif

// From 3.15 on every thread has a frame at the far end that no chain is without.
inline FramePointer far_end(FramePointer frame) noexcept {
#if PY_VERSION_HEX >= 0x030F0000
  const auto* last = reinterpret_cast<const Frame*>(frame);
  while (last != nullptr && previous(last) != nullptr) last = previous(last);
  return reinterpret_cast<FramePointer>(const_cast<Frame*>(last));
#else
  static_cast<void>(frame);
  return nullptr;
#endif
}

inline void have_seen(const Frame* innermost) noexcept {
  if constexpr (!SeenCode::kNeeded) return;
  SeenCode seen;
  for (const Frame* frame = shown(innermost); frame != nullptr; frame = shown(previous(frame))) {
    seen.see(code_of(executable(frame)));
  }
}

}  // namespace detail

// Calls `call()` with the frames of this thread out of sight. No destructor puts them back: a
// thread that is ended in there has no use for them.
template <class Call>
PyObject* call_alone(PyThreadState* state, Call&& call) {
  if constexpr (!kLayoutKnown) return call();
  const detail::FramePointer before = detail::innermost_of(state);
  const int depth = detail::depth_of(state);
  detail::have_seen(innermost(state));
  detail::innermost_of(state) = detail::far_end(before);
  detail::room_of(state) += depth;
  PyObject* result = call();
  detail::room_of(state) -= depth;
  detail::innermost_of(state) = before;
  return result;
}

}  // namespace whence::cpython
