// stack_range.cpp: see stack_range.h.
#include "unwind/stack_range.h"

#include "base/own_stack.h"

namespace whence::unwind {

constinit thread_local detail::OwnStack detail::own_stack;

void detail::find_own_stack() noexcept {
  const base::OwnStack found = base::own_stack();
  own_stack = {{reinterpret_cast<Address>(found.begin), reinterpret_cast<Address>(found.end)},
               true};
}

}  // namespace whence::unwind
