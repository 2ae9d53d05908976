// write_stack.h: code entries and stacks as metadata of the recording, each written once.
//
// Threads: any. Allocates: by mmap, for what has been written. Fails by: leaving them out.
#pragma once

#include <cstdint>

#include "stacks/code_registry.h"
#include "stacks/stack_table.h"

namespace whence::probes {

// Names, file and line table of a piece of code. The caller sees to it that it is done once.
void write_code(std::uint32_t recording, const stacks::CodeEntry& entry) noexcept;

// One more frame on a stack that is written. Its code must have been.
void write_stack_node(std::uint32_t recording, stacks::StackId stack) noexcept;

}  // namespace whence::probes
