// line_table.h: from an instruction to its place in the source (PEP 657 location tables, CPython
// 3.11 and later).
//
// Threads: any; only arguments are touched. Allocates: never.
// Fails by: a location without a line. Any bytes are safe to decode: nothing is read past the
// table's end.
#pragma once

#include <cstdint>
#include <span>

namespace whence::base {

struct Location {
  static constexpr std::int32_t kUnknown = -1;

  std::int32_t line = kUnknown;
  std::int32_t end_line = kUnknown;
  std::int32_t column = kUnknown;  // columns count UTF-8 bytes from 0, as CPython's do
  std::int32_t end_column = kUnknown;
  bool operator==(const Location&) const = default;
};

// `offset` is that of the instruction in bytes; a negative one means "before the first".
[[nodiscard]] Location locate(std::span<const std::uint8_t> table, std::int32_t first_line,
                              std::int32_t offset) noexcept;

// The first offset of the stretch around `offset` that has one location. An interpreter reports one
// call at several offsets, depending on whether it has specialised the instruction; this makes
// them one.
[[nodiscard]] std::int32_t first_at_same_place(std::span<const std::uint8_t> table,
                                               std::int32_t first_line,
                                               std::int32_t offset) noexcept;

}  // namespace whence::base
