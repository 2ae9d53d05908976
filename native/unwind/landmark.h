// landmark.h: going on beyond code that nobody can leave, where a frame further out is known.
//
// Threads: any. Allocates: never. Fails by: saying no.
//
// Code that was made at run time has no unwind table, and mostly no frame pointer. But whoever runs
// an interpreter knows an address in each native frame of its loop (cpython/evaluations.h), and the
// loop has called that code. So the words between here and that address are looked at: one of them
// is the place in the loop to return to. It must follow a call, its frame must have the address in
// it, and what that frame returns to must follow a call, too. Its frame pointer is the one that the
// code has, or has put beside the return address. A frame that is counted from a wrong one does not
// pass these tests.
#pragma once

#include "unwind/registers.h"
#include "unwind/stack_range.h"

namespace whence::unwind {

struct Landing {
  Registers at;  // in the frame that was found
  Address word;  // where on the stack its address was
};

// The frame around `landmark`, which lies further out on this stack. False: it is not certain.
[[nodiscard]] bool land_at(Address landmark, const Registers& from, const StackRange& stack,
                           std::uint64_t generation, Landing& landing) noexcept;

}  // namespace whence::unwind
