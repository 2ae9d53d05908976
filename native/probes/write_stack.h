// write_stack.h: code entries and stacks as metadata of the recording, each written once.
//
// Threads: any. Allocates: by mmap, for what has been written. Fails by: leaving them out.
#pragma once

#include <cstdint>

#include "stacks/code_registry.h"
#include "stacks/stack_table.h"
#include "stacks/store.h"

namespace whence::probes {

// Names, file and line table of a piece of code.
void write_code(std::uint32_t recording, const stacks::CodeEntry& entry) noexcept;

// The path of a library, and its build id.
void write_module(std::uint32_t recording, std::uint32_t module) noexcept;

// Has that been done?
[[nodiscard]] bool is_written(std::uint32_t recording, stacks::CodeId code) noexcept;
// Calls visit(facts) for each piece of code of which it has been.
template <class Visit>
void for_each_code(std::uint32_t recording, Visit&& visit) {
  const stacks::CodeRegistry& codes = stacks::store().codes;
  const stacks::CodeId last = codes.statistics().codes;
  for (stacks::CodeId code = 1; code <= last; ++code) {
    if (is_written(recording, code)) visit(codes.facts(code));
  }
}

// One more frame on a stack that is written. Its code must have been.
void write_stack_node(std::uint32_t recording, stacks::StackId stack) noexcept;

// A stack with all that it is made of. Quick if it is written.
void write_stack(std::uint32_t recording, stacks::StackId stack) noexcept;

}  // namespace whence::probes
