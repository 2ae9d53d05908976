// stack_range.h: which addresses are stack of this thread.
//
// Threads: each its own. Allocates: the C library may, when the process's first thread asks for the
// first time (base/own_stack.h).
// Fails by: an empty range; words are then read in a way that cannot fault.
//
// A thread has the stack that it began with, and perhaps further segments of ours, one inside the
// other (base/more_stack.h). Whoever switches to another stack without saying so (fibers, signal
// stacks) is unwound all the same, a system call for each word.
#pragma once

#include "base/stack_segment.h"
#include "unwind/registers.h"

namespace whence::unwind {

struct StackRange {
  Address begin = 0, end = 0;

  [[nodiscard]] bool has(Address address) const noexcept { return address - begin < end - begin; }
  // What lies further out. Of a stack that nobody knows that is nothing, not everything.
  [[nodiscard]] StackRange from(Address sp) const noexcept {
    return has(sp) ? StackRange{sp, end} : StackRange{};
  }
};

namespace detail {
struct OwnStack {
  StackRange range;
  bool asked = false;
};
[[gnu::tls_model("initial-exec")]] extern thread_local constinit OwnStack own_stack;
void find_own_stack() noexcept;
}  // namespace detail

// The part of this thread's stack that `sp` is in.
[[nodiscard]] inline StackRange stack_range(Address sp) noexcept {
  for (const base::StackSegment* segment = base::innermost_segment(); segment != nullptr;
       segment = segment->outer) {
    const StackRange range = {reinterpret_cast<Address>(segment->begin),
                              reinterpret_cast<Address>(segment->end)};
    if (range.has(sp)) return range;
  }
  if (!detail::own_stack.asked) detail::find_own_stack();
  return detail::own_stack.range.has(sp) ? detail::own_stack.range : StackRange{};
}

}  // namespace whence::unwind
