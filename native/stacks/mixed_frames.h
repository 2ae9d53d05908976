// mixed_frames.h: nodes of the stack table that are not Python frames.
//
// Threads: any. Allocates: never. Fails by: it cannot.
//
// Code ids with the highest bit set are no code:
//
//     a module      a native frame; the offset is an address in the module's file (modules.h)
//     0             a remark about the frames around it; the offset is a Remark
//     kPythonRun    the Python frames of one run of the evaluation loop; the offset is a stack of
//                   Python frames alone, of which those count that are not in the next such node
//                   further out
//
// So a deep recursion with native frames around it is as cheap as one without: what is new on a
// Python stack is a node there, and one node here.
#pragma once

#include <cstdint>

#include "stacks/stack_table.h"

namespace whence::stacks {

inline constexpr CodeId kNativeCode = 0x80000000;
inline constexpr CodeId kRemark = kNativeCode;
inline constexpr CodeId kPythonRun = 0xFFFFFFFF;

enum class Remark : std::int32_t {
  gap = 1,       // native frames from here on to the next Python frame are not known
  unmerged = 2,  // Python frames inside, native ones outside: how they go together is not known
};

[[nodiscard]] constexpr bool is_python_run(CodeId code) noexcept {
  return code == kPythonRun;
}
// Of those that are no code: a module's, or a remark.
[[nodiscard]] constexpr bool is_native(CodeId code) noexcept {
  return (code & kNativeCode) != 0 && code != kPythonRun;
}
[[nodiscard]] constexpr std::uint32_t module_of(CodeId code) noexcept {
  return code & ~kNativeCode;
}

// Of a node that is a run: the Python stack that it says, and the part that is not its own.
struct PythonRun {
  StackId inner, outer;
};
[[nodiscard]] inline PythonRun python_run(const StackTable& table, StackId id) noexcept {
  const auto python = [&](StackId node) { return static_cast<StackId>(table.node(node).offset); };
  StackId outside = table.node(id).parent;
  while (outside != kEmpty && !is_python_run(table.node(outside).code)) {
    outside = table.node(outside).parent;
  }
  return {python(id), outside != kEmpty ? python(outside) : kEmpty};
}

}  // namespace whence::stacks
