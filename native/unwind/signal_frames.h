// signal_frames.h: is this thread in a signal handler?
//
// Threads: any, also in one, once prepare() has been called. Allocates: never (stack_range.h).
// Fails by: saying yes, where frames cannot be left.
#pragma once

namespace whence::unwind {

// Whether a signal has interrupted one of the innermost frames. Handlers that go deeper than that
// are not found out.
[[nodiscard]] bool may_be_in_signal_handler() noexcept;

}  // namespace whence::unwind
