// signal_frames.cpp: see signal_frames.h.
#include "unwind/signal_frames.h"

#include <cstddef>

#include "base/libraries_generation.h"
#include "unwind/walk.h"

namespace whence::unwind {

bool may_be_in_signal_handler() noexcept {
  constexpr std::size_t kMost = 64;
  const std::uint64_t generation = base::libraries_generation();
  detail::Steps steps(registers_here());
  for (std::size_t depth = 0; depth < kMost; ++depth) {
    const Rule rule = Rule::unpack(detail::rule_of(steps, generation).rule);
    if (rule.kind == Kind::signal) return true;
    detail::Left left;
    End end = End::cut;
    if (!steps.leave(rule, left, end)) return end != End::outermost;
  }
  return false;
}

}  // namespace whence::unwind
