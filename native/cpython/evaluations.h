// evaluations.h: which Python frames belong to which run of CPython's evaluation loop.
//
// Threads: the thread whose frames they are (see thread.h). Allocates: never.
// Fails by: frames without a place, which is said.
//
// The loop runs one Python function after another without a call in C, so a native frame of it
// stands for as many Python frames as were called that way. Each run of the loop keeps something in
// its own native frame, and where that lies says which native frame it is, whatever the function is
// called and whoever compiled it:
//
//     3.11          a structure with the current frame, on the C stack, linked to the one before
//     3.12 and on   an interpreter's frame of its own, on the C stack, in the chain of frames
#pragma once

#include <Python.h>

#include <cstdint>

#include "cpython/frames.h"

namespace whence::cpython {

// Is it the outermost frame of a run? From 3.12 on it is then one of the interpreter's own.
[[nodiscard]] inline bool begins_run(const Frame* frame) noexcept {
#if PY_VERSION_HEX < 0x030C0000
  return read_at<bool>(frame, kLayout.is_entry);
#else
  return read_at<std::uint8_t>(frame, kLayout.owner) >= kLayout.first_inner;
#endif
}

// Addresses in the native frames of runs, from the innermost run on.
class RunPlaces {
 public:
#if PY_VERSION_HEX < 0x030C0000
  explicit RunPlaces(PyThreadState* state) noexcept : run_(state->cframe) {}

  // Of the run that begins with this frame; 0: not known.
  [[nodiscard]] std::uintptr_t next(const Frame*) noexcept {
    const _PyCFrame* run = run_;
    run_ = run != nullptr ? run->previous : nullptr;
    return reinterpret_cast<std::uintptr_t>(run);
  }

 private:
  const _PyCFrame* run_;
#else
  explicit RunPlaces(PyThreadState*) noexcept {}

  [[nodiscard]] std::uintptr_t next(const Frame* first) noexcept {
    return reinterpret_cast<std::uintptr_t>(first);
  }
#endif
};

}  // namespace whence::cpython
