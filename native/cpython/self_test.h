// self_test.h: may the frame layout be trusted on the interpreter that runs right now?
//
// Threads: one, attached, while the module is loaded (and again when a test asks).
// Allocates: freely; it runs a few dozen lines of Python.
// Fails by: a reason in words, with an exception set if an interrupt came in between. No layout,
// however wrong, can make it crash: memory is read through the kernel.
#pragma once

#include <Python.h>

#include "cpython/frame_layout.h"

namespace whence::cpython {

// nullptr if walking with `layout` agrees with the public frame API on a plain chain, a specialised
// call of a class, a generator, and an exception thrown through `yield from`; else what went wrong.
[[nodiscard]] const char* self_test(const FrameLayout& layout) noexcept;

}  // namespace whence::cpython
