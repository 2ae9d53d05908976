// layout_py315.h: interpreter frames of CPython 3.15. See frame_layout.h.
//
// New here: every thread has a base frame without code at the far end of its chain (owner 3). The
// code object is a tagged stack reference, as in 3.14. The states of generators count from 0.
#pragma once

#include <Python.h>

#include "cpython/frame_layout.h"

namespace whence::cpython {

struct FrameImage {
  std::uintptr_t executable;
  void* previous;
  std::uintptr_t function;
  void *globals, *builtins, *locals;
  void* frame_object;
  void* instruction;
  void* stack_pointer;
  std::uint16_t return_offset;
  char owner;
};

inline constexpr bool kLayoutKnown = true;
inline constexpr FrameLayout kLayout = [] {
  FrameLayout layout = layout_of<FrameImage>(3);
  layout.generator_over = 5;
  return layout;
}();

inline const void* current_frame(PyThreadState* state) noexcept {
  return state->current_frame;
}

}  // namespace whence::cpython
