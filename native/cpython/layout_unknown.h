// layout_unknown.h: stands in for the frame layout of an interpreter nobody has described yet.
//
// Nothing here is ever followed: kLayoutKnown keeps the public API in charge.
#pragma once

#include <Python.h>

#include "cpython/frame_layout.h"

namespace whence::cpython {

inline constexpr bool kLayoutKnown = false;
inline constexpr FrameLayout kLayout = {};

inline const void* current_frame(PyThreadState*) noexcept {
  return nullptr;
}

}  // namespace whence::cpython
