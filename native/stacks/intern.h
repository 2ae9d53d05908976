// intern.h: the id of a stack, from its caller's id and a frame.
//
// Threads: any. Allocates: when tables grow, by mmap. Fails by: a truncated id, counted.
#pragma once

#include "stacks/store.h"

namespace whence::stacks {

// Adds a frame whose place in the source has not been met under this caller, or not at this offset.
[[nodiscard]] StackId intern_new_frame(StackId caller, CodeId code, std::int32_t offset) noexcept;

// Offsets that are one place in the source give one id.
[[nodiscard]] inline StackId intern_frame(StackId caller, CodeId code,
                                          std::int32_t offset) noexcept {
  if (is_truncated(caller)) return caller;
  const StackId id = store().stacks.find(caller, code, offset);
  return id != kEmpty ? id : intern_new_frame(caller, code, offset);
}

}  // namespace whence::stacks
