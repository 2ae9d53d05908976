// layout_py313.h: interpreter frames of CPython 3.13. See frame_layout.h.
//
// New here: the thread state points at the frame without a detour, the instruction is the one that
// runs, and a specialised call of a class has a clean-up frame between caller and __init__.
#pragma once

#include <Python.h>

#include "cpython/frame_layout.h"

namespace whence::cpython {

struct FrameImage {
  void* executable;  // None in the interpreter's own frames
  void* previous;
  void *function, *globals, *builtins, *locals;
  void* frame_object;
  void* instruction;
  int stack_top;
  std::uint16_t return_offset;
  char owner;
  void* places[1];
};

inline constexpr bool kLayoutKnown = true;
inline constexpr FrameLayout kLayout = [] {
  FrameLayout layout = layout_of<FrameImage>();
  layout.stack_top = offsetof(FrameImage, stack_top);
  layout.places = offsetof(FrameImage, places);
  return layout;
}();
static_assert(kLayout.generator_state == offsetof(PyGenObject, gi_frame_state));

inline const void* current_frame(PyThreadState* state) noexcept {
  return state->current_frame;
}

}  // namespace whence::cpython
