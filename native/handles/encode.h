// encode.h: columns into the bytes of a file (FORMAT.md).
//
// Threads: any; only arguments are touched. Allocates: the bytes. Fails by: std::bad_alloc.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "handles/columns.h"
#include "handles/layout.h"

namespace whence::handles {

struct Part {
  Namespace name_space;
  const Columns* columns;
};

[[nodiscard]] std::string encode(std::span<const Part> parts);

}  // namespace whence::handles
