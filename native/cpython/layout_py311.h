// layout_py311.h: interpreter frames of CPython 3.11. See frame_layout.h.
#pragma once

#include <Python.h>

#include "cpython/frame_layout.h"

namespace whence::cpython {

struct FrameImage {
  void *function, *globals, *builtins, *locals;
  void* executable;
  void* frame_object;
  void* previous;
  void* instruction;  // the code unit before the next one: what f_lasti reports
  int stack_top;
  bool is_entry;
  char owner;
  void* places[1];
};

inline constexpr bool kLayoutKnown = true;
inline constexpr FrameLayout kLayout = [] {
  FrameLayout layout = layout_of<FrameImage>();
  layout.stack_top = offsetof(FrameImage, stack_top);
  layout.places = offsetof(FrameImage, places);
  layout.is_entry = offsetof(FrameImage, is_entry);
  layout.generator_frame = offsetof(PyGenObject, gi_iframe);
  layout.generator_state = offsetof(PyGenObject, gi_frame_state);
  return layout;
}();

inline const void* current_frame(PyThreadState* state) noexcept {
  return state->cframe->current_frame;
}

}  // namespace whence::cpython
