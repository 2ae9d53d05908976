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
  std::size_t
      executable;  // the code object, perhaps tagged; frames of the interpreter's own may have none
  std::size_t previous;     // the frame that called this one
  std::size_t instruction;  // address of the instruction that f_lasti reports
  std::size_t owner;        // one byte: who keeps the frame's memory
  std::uintptr_t tag_bits;  // bits of `executable` that are not part of the address
  std::uint8_t thread;      // `owner` of ordinary frames
  std::uint8_t
      generator;  // `owner` of frames inside generators and coroutines: complete at any instruction
  std::uint8_t
      first_inner;  // `owner` values from here on are the interpreter's own frames, never shown
};

}  // namespace whence::cpython
