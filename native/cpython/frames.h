// frames.h: following a thread's interpreter frames, innermost first, without making a frame
// object.
//
// Threads: the thread whose frames they are, attached to its interpreter (see thread.h).
// Allocates: never. A step is a handful of loads.
// Fails by: it cannot, once self_test.h has passed; before that nothing here may be called.
#pragma once

#include <Python.h>

#include <cstdint>
#include <cstring>

#include "cpython/layout.h"

namespace whence::cpython {

// An interpreter frame: memory of CPython's, read at the offsets of FrameLayout.
struct Frame;

template <class T>
[[nodiscard]] inline T read_at(const void* base, std::size_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

[[nodiscard]] inline const Frame* innermost(PyThreadState* state) noexcept {
  return static_cast<const Frame*>(current_frame(state));
}

[[nodiscard]] inline const Frame* previous(const Frame* frame) noexcept {
  return read_at<const Frame*>(frame, kLayout.previous);
}

// The code object with its tags: equal words mean the same code object.
[[nodiscard]] inline std::uintptr_t executable(const Frame* frame) noexcept {
  return read_at<std::uintptr_t>(frame, kLayout.executable);
}

[[nodiscard]] inline std::uintptr_t instruction(const Frame* frame) noexcept {
  return read_at<std::uintptr_t>(frame, kLayout.instruction);
}

[[nodiscard]] inline PyCodeObject* code_of(std::uintptr_t executable) noexcept {
  return reinterpret_cast<PyCodeObject*>(executable & ~kLayout.tag_bits);
}

// Byte offset of an instruction in its code, as f_lasti gives it.
[[nodiscard]] inline std::int32_t offset_in(const PyCodeObject* code,
                                            std::uintptr_t instruction) noexcept {
  const auto start = reinterpret_cast<std::uintptr_t>(code->co_code_adaptive);
  return instruction < start ? -1 : static_cast<std::int32_t>(instruction - start);
}

// Does it belong to a generator, a coroutine or an asynchronous generator?
[[nodiscard]] inline bool is_generator(const Frame* frame) noexcept {
  return read_at<std::uint8_t>(frame, kLayout.owner) == kLayout.generator;
}

// The frame of a generator, coroutine or asynchronous generator; nullptr if it has run to its end,
// and for anything else.
[[nodiscard]] inline const Frame* frame_of_generator(PyObject* object) noexcept {
  if (!PyCoro_CheckExact(object) && !PyGen_CheckExact(object) && !PyAsyncGen_CheckExact(object)) {
    return nullptr;
  }
  const auto* generator = reinterpret_cast<const char*>(object);
  const auto state = static_cast<signed char>(generator[kLayout.generator_state]);
  if (state >= kLayout.generator_over) return nullptr;
  return reinterpret_cast<const Frame*>(generator + kLayout.generator_frame);
}

// Is the frame of a generator past the instruction that made it?
[[nodiscard]] inline bool has_begun(const Frame* frame) noexcept {
  const PyCodeObject* code = code_of(executable(frame));
  const auto start = reinterpret_cast<std::uintptr_t>(code->co_code_adaptive);
  const auto offset = static_cast<std::intptr_t>(instruction(frame) - start);
  return offset > code->_co_firsttraceable * kCodeUnit;
}

// The interpreter's own rule for what a traceback leaves out: frames of its own, and frames that
// have not reached their first traceable instruction (a generator's frame is complete from the
// start).
[[nodiscard]] inline bool hidden(const Frame* frame) noexcept {
  const auto owner = read_at<std::uint8_t>(frame, kLayout.owner);
  if (owner >= kLayout.first_inner) return true;
  if (owner == kLayout.generator) return false;
  const PyCodeObject* code = code_of(executable(frame));
  const auto start = reinterpret_cast<std::uintptr_t>(code->co_code_adaptive);
  const auto done = static_cast<std::intptr_t>(instruction(frame) - start);
  return done < code->_co_firsttraceable * kCodeUnit;
}

// The first frame from this one on that is not hidden; nullptr if there is none.
[[nodiscard]] inline const Frame* shown(const Frame* frame) noexcept {
  while (frame != nullptr && hidden(frame)) frame = previous(frame);
  return frame;
}

}  // namespace whence::cpython
