// decode.h: the bytes of a file (FORMAT.md) into columns, whatever the bytes are.
//
// Threads: any; only arguments are touched.
// Allocates: the columns: at most 16 bytes for each byte of the file.
// Fails by: Problem; std::bad_alloc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "handles/columns.h"
#include "handles/layout.h"

namespace whence::handles {

enum class Problem { none, no_table, too_new, cut, damaged, twice };

struct LoadedPart {
  Namespace name_space;
  Columns columns;
};

struct Loaded {
  Problem problem = Problem::none;
  // too_new: the version; cut: how long the file should be; twice: the handle; else 0
  std::uint64_t detail = 0;
  std::vector<LoadedPart> parts;
};

[[nodiscard]] Loaded decode(std::span<const std::uint8_t> bytes);

// How much memory decode() would take for these bytes, at most, going by what their parts say they
// have. Nothing is checked but that they could have it.
[[nodiscard]] std::uint64_t decoded_size(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace whence::handles
