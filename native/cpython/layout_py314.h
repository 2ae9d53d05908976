// layout_py314.h: interpreter frames of CPython 3.14. See frame_layout.h.
//
// New here: the code object is a stack reference whose two lowest bits are tags, and the stack is a
// pointer.
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
inline constexpr FrameLayout kLayout = layout_of<FrameImage>(3);

inline const void* current_frame(PyThreadState* state) noexcept {
  return state->current_frame;
}

}  // namespace whence::cpython
