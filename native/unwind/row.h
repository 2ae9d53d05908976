// row.h: the row of an unwind table that holds at an instruction, by running the table's program.
//
// Threads: any. Allocates: never. Looks at code, too, where a table speaks of signals.
// Fails by: Kind::unsupported, for what a Rule cannot say and for tables that make no sense.
#pragma once

#include "unwind/bytes.h"
#include "unwind/rule.h"

namespace whence::unwind {

// What all functions of a kind have in common, and what is said of one (CIE and FDE).
struct Entry {
  std::uint64_t code_step = 1;  // what distances in code are counted in
  std::int64_t data_step = 1;   // and in the stack
  std::uint64_t return_register = 0;
  std::uint8_t pointers = 0;   // how addresses are written
  bool has_extra = false;      // each function has bytes that are not for us
  bool is_signal = false;      // by its letters; anybody may say so
  Address begin = 0, end = 0;  // of the function
  Bytes first;                 // the program for all of them, then that of the one
  Bytes own;
};

// At `pc`, which lies in the function.
[[nodiscard]] Rule rule_at(const Entry& entry, Address pc) noexcept;

}  // namespace whence::unwind
