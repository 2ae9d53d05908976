// code_entry.h: what a recording says of a code object.
//
// Threads: any. Allocates: never. Fails by: it cannot.
#pragma once

#include <cstdint>

namespace whence::read {

struct CodeEntry {
  std::uint64_t name, qualname, filename, line_table;  // strings
  std::int64_t first_line;
};

}  // namespace whence::read
