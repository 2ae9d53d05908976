// table.h: a library's unwind table (.eh_frame), and what it says of an instruction.
//
// Threads: any, also inside a signal handler. Allocates: never.
// Fails by: Kind::unsupported. Tables are copied piece by piece in ways that cannot fault: a wrong
// address may lead to a library that is being unloaded.
#pragma once

#include "unwind/libraries.h"
#include "unwind/rule.h"

namespace whence::unwind {

// Of the last function in the table that does not begin after `pc`; it may end before it. Empty:
// there is none.
struct Extent {
  Address begin = 0, end = 0;
};
[[nodiscard]] Extent function_before(const Library& library, Address pc) noexcept;

[[nodiscard]] Rule find_rule(const Library& library, Address pc) noexcept;

}  // namespace whence::unwind
