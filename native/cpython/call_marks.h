// call_marks.h: a mark in a frame that lasts exactly as long as the call that the frame is in.
//
// Threads: the thread whose frames they are, attached to its interpreter.
// Allocates: never. Fails by: finding no mark, or no place for one.
//
// A frame that has called a Python function waits with its stack as it was before the callable was
// put on it:
//
//      places   [ locals | in use | callable  self  arguments ]     before the call
//                                 ^ stack_top, while it lasts: free, and the mark goes here
//
// Every call puts something there before it begins. So a mark that is found there, in a frame that
// is at the same instruction as when it was put there, is of the very call that is under way:
// neither this frame nor any outside it has moved since. That is all that one needs to know of a
// stack that was walked before.
//
// Nobody reads what lies beyond stack_top: not the interpreter, not the collector, not frame
// objects. A mark is odd, so it is no object's address.
//
// It does not hold where the interpreter enters a frame without taking operands off the stack: for
// generators, for its own frames, and for a property that is about to be called (3.12), which
// leaves an empty place below. Nor is it used where references on the stack are tagged (3.14 on).
#pragma once

#include <cstdint>
#include <cstring>

#include "cpython/frames.h"

namespace whence::cpython {

namespace detail {

// Has the interpreter gone from `frame` to `callee` by itself, and by a call?
[[nodiscard, gnu::always_inline]] inline bool called_directly(const Frame* callee) noexcept {
  if (read_at<std::uint8_t>(callee, kLayout.owner) != kLayout.thread) return false;
  return kLayout.is_entry == 0 || !read_at<bool>(callee, kLayout.is_entry);
}

[[nodiscard, gnu::always_inline]] inline std::uintptr_t* places_of(const Frame* frame) noexcept {
  auto* memory = const_cast<char*>(reinterpret_cast<const char*>(frame));
  return reinterpret_cast<std::uintptr_t*>(memory + kLayout.places);
}

}  // namespace detail

// The mark in `frame`, which has called `callee`; 0: there is none.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t call_mark(const Frame* frame,
                                                                  const Frame* callee) noexcept {
  if (kLayout.stack_top == 0 || !detail::called_directly(callee)) return 0;
  const int top = read_at<int>(frame, kLayout.stack_top);
  if (top < 0) return 0;
  const std::uintptr_t mark = detail::places_of(frame)[top];
  return (mark & 1) != 0 ? mark : 0;
}

// Puts one there, if there is a place for it. `frame` is not hidden.
inline void mark_call(const Frame* frame, const Frame* callee, std::uintptr_t mark) noexcept {
  if (kLayout.stack_top == 0 || !detail::called_directly(callee)) return;
  const PyCodeObject* code = code_of(executable(frame));
  const int top = read_at<int>(frame, kLayout.stack_top);
  const int locals = code->co_nlocalsplus;
  if (top < locals || top >= locals + code->co_stacksize) return;
  std::uintptr_t* places = detail::places_of(frame);
  if (top == locals || places[top - 1] != 0) places[top] = mark | 1;
}

}  // namespace whence::cpython
