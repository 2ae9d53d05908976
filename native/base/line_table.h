// line_table.h: from an instruction to its place in the source (PEP 657 location tables, CPython
// 3.11 and later).
//
// Threads: any; only arguments are touched. Allocates: never.
// Fails by: a location without a line. Any bytes are safe to decode: nothing is read past the
// table's end.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace whence::base {

namespace detail {
void for_each_line(std::span<const std::uint8_t> table, std::int32_t first_line,
                   void (*visit)(void*, std::int32_t), void* to);
}  // namespace detail

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

// Calls visit(line) for each stretch of instructions that has a line, in the order of the
// instructions; a line may come several times.
template <class Visit>
void for_each_line(std::span<const std::uint8_t> table, std::int32_t first_line, Visit&& visit) {
  const auto step = [](void* to, std::int32_t line) {
    (*static_cast<std::remove_reference_t<Visit>*>(to))(line);
  };
  detail::for_each_line(table, first_line, step, &visit);
}

// The first offset of the stretch around `offset` that has one location. An interpreter reports one
// call at several offsets, depending on whether it has specialised the instruction; this makes
// them one.
[[nodiscard]] std::int32_t first_at_same_place(std::span<const std::uint8_t> table,
                                               std::int32_t first_line,
                                               std::int32_t offset) noexcept;

}  // namespace whence::base
