// layout_py312.h: interpreter frames of CPython 3.12. See frame_layout.h.
//
// New here: each entry into the evaluation loop has a frame of the interpreter's own on the C stack
// (owner 3).
#pragma once

#include <Python.h>

#include "cpython/frame_layout.h"

namespace whence::cpython {

struct FrameImage {
  void* executable;
  void* previous;
  void *function, *globals, *builtins, *locals;
  void* frame_object;
  void* instruction;  // the code unit before the next one: what f_lasti reports
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
  return state->cframe->current_frame;
}

}  // namespace whence::cpython
