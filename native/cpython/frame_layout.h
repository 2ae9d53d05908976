// frame_layout.h: where the facts of an interpreter frame lie in CPython's memory.
//
// Threads, allocation, failure: plain data.
//
// CPython keeps a chain of interpreter frames per thread and makes frame objects only for those who
// ask. Their layout is private, differs by minor version and may change in a patch release. So it
// is data here, one file for each (layout_py311.h and on), trusted only after self_test.h has
// compared it with the public API.
#pragma once

#include <cstddef>
#include <cstdint>

namespace whence::cpython {

inline constexpr std::intptr_t kCodeUnit = 2;  // bytes; the layouts count instructions in these

struct FrameLayout {
  std::size_t executable;   // the code object, perhaps tagged; the interpreter's own may have none
  std::size_t previous;     // the frame that called this one
  std::size_t instruction;  // address of the instruction that f_lasti reports
  std::size_t owner;        // one byte: who keeps the frame's memory
  std::uintptr_t tag_bits;  // bits of `executable` that are not part of the address

  // Values of `owner`, the same on all versions so far.
  std::uint8_t thread = 0;       // an ordinary frame
  std::uint8_t generator = 1;    // inside a generator or coroutine: complete at any instruction
  std::uint8_t first_inner = 3;  // from here on: the interpreter's own frames, never shown

  // For call_marks.h; 0 where that is not to be done.
  std::size_t stack_top = 0;  // an int: how many of the places from `places` on are in use
  std::size_t places = 0;     // locals, then the stack
  std::size_t is_entry = 0;   // a bool: C code has called it; 0 where a frame of its own says so

  std::size_t generator_frame = 72;  // where the frame lies in a generator or coroutine
  std::size_t generator_state = 67;  // a signed byte
  signed char generator_over = 1;    // from here on: it is over, and its frame is gone
};

// The layout of frames that lie in memory like `Image`, a structure with members of these names.
template <class Image>
[[nodiscard]] constexpr FrameLayout layout_of(std::uintptr_t tag_bits = 0) noexcept {
  return {offsetof(Image, executable), offsetof(Image, previous), offsetof(Image, instruction),
          offsetof(Image, owner), tag_bits};
}

}  // namespace whence::cpython
