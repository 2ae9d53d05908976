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
//
// A frame that has called C, which has called Python, has no such place: its stack_top is -1 while
// it runs, whatever it waits for. On 3.11 that is every call while there is an evaluation hook. So
// there the mark is in the frame that was called, in the place of its own -1:
//
//      stack_top   -1: it runs    < -1: it runs, and has a mark    else: it waits, or is suspended
//
// The interpreter writes -1 whenever a frame begins or goes on, and a real one before it leaves it.
// So where a mark is found, the frame has run since it was put there, and whoever called it waits
// in that same call. All that anybody asks of a stack_top is whether it is above 0, or 0.
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

// A mark is odd, and says a number and whose it is.
[[nodiscard, gnu::always_inline]] constexpr std::uintptr_t make_mark(std::uint32_t owner,
                                                                     std::size_t number) noexcept {
  return std::uintptr_t{owner} << 33 | number << 1 | 1;
}
[[nodiscard, gnu::always_inline]] constexpr std::size_t number_of(std::uintptr_t mark) noexcept {
  return mark >> 1 & 0xFFFFFFFF;
}

namespace detail {

// In a stack_top there is room for small numbers, and for some of the owner.
inline constexpr bool kMarksEntries = kLayout.is_entry != 0 && kLayout.stack_top != 0;
inline constexpr int kNumberBits = 21, kOwnerBits = 9;

[[nodiscard, gnu::always_inline]] constexpr std::uintptr_t owner_in_entry(
    std::uintptr_t mark) noexcept {
  return mark >> 33 & ((1 << kOwnerBits) - 1);
}

// The number of the mark in a frame that C has called; 0: there is none of this owner's.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t entry_mark(const Frame* callee,
                                                                   std::uint32_t owner) noexcept {
  const int top = read_at<int>(callee, kLayout.stack_top);
  if (!kMarksEntries || top >= -1) return 0;
  const auto said = static_cast<std::uintptr_t>(-2 - top);
  const std::uintptr_t mark = make_mark(owner, said & ((1 << kNumberBits) - 1));
  return said >> kNumberBits == owner_in_entry(mark) ? mark : 0;
}

inline void mark_entry(const Frame* callee, std::uintptr_t mark) noexcept {
  if (!kMarksEntries || read_at<int>(callee, kLayout.stack_top) >= 0) return;
  if (number_of(mark) >> kNumberBits != 0) return;
  const int top = -2 - static_cast<int>(owner_in_entry(mark) << kNumberBits | number_of(mark));
  char* memory = const_cast<char*>(reinterpret_cast<const char*>(callee));
  std::memcpy(memory + kLayout.stack_top, &top, sizeof top);
}

}  // namespace detail

// The mark of the call from `frame` to `callee`; 0: there is none, or it is not this owner's.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t call_mark(const Frame* frame,
                                                                  const Frame* callee,
                                                                  std::uint32_t owner) noexcept {
  if (kLayout.stack_top == 0) return 0;
  if (!detail::called_directly(callee)) return detail::entry_mark(callee, owner);
  const int top = read_at<int>(frame, kLayout.stack_top);
  if (top < 0) return 0;
  const std::uintptr_t mark = detail::places_of(frame)[top];
  return (mark & 1) != 0 && mark >> 33 == owner ? mark : 0;
}

// Puts one there, if there is a place for it. `frame` is not hidden.
inline void mark_call(const Frame* frame, const Frame* callee, std::uintptr_t mark) noexcept {
  if (kLayout.stack_top == 0) return;
  if (!detail::called_directly(callee)) return detail::mark_entry(callee, mark);
  const PyCodeObject* code = code_of(executable(frame));
  const int top = read_at<int>(frame, kLayout.stack_top);
  const int locals = code->co_nlocalsplus;
  if (top < locals || top >= locals + code->co_stacksize) return;
  std::uintptr_t* places = detail::places_of(frame);
  if (top == locals || places[top - 1] != 0) places[top] = mark;
}

}  // namespace whence::cpython
