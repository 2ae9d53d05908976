// frame_pointer.h: leaving code that has no unwind table.
//
// Threads: any, also inside a signal handler. Allocates: never. Fails by: saying no.
//
// A frame pointer may be anything in code that does not keep one. It is believed only where it can
// be proven: the two words there are a frame further out and a return address, and right before
// that address is an instruction that calls the code which we are in. That is not so if a function
// with a table begins or ends in between: then the frame is its caller's, and one would be missed.
// Where nothing at all has a table, as in code made at run time, it may still be.
#pragma once

#include "unwind/registers.h"
#include "unwind/rule.h"

namespace whence::unwind {

// The frame pointer points to the caller's, and next to that is where to return to.
inline constexpr Rule kByFramePointer = {Kind::frame,         Base::fp, false, false,
                                         2 * sizeof(Address), -1,       -2};

[[nodiscard]] bool has_frame_pointer(const Registers& at) noexcept;

}  // namespace whence::unwind
