// unsettled.h: moments at which a thread's Python frames are not where its state says.
//
// Threads: any, inside an allocator. Allocates: never. Fails by: saying yes, where it is not known.
//
// A signal may come in the middle of a step of the interpreter, and its handler may map memory. A
// greenlet puts its part of the C stack back in place of another one's, then gives back the copy
// of it, and only then changes the thread's state: until then that leads to frames that have been
// overwritten. Nothing shows it but who calls.
#pragma once

namespace whence::stacks {

// Once, before the first of these.
[[nodiscard]] bool prepare_for_unsettled() noexcept;

// This thread may be in a signal handler.
[[nodiscard]] bool is_interrupted() noexcept;

// `frame` is the native frame of the function that somebody has called to give a block back.
[[nodiscard]] bool is_between_stacks(const void* frame) noexcept;

}  // namespace whence::stacks
