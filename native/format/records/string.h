// string.h: byte strings under a number: names as UTF-8, line tables as they are.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// A string that fits into no chunk comes in parts.
struct String {
  static constexpr Kind kKind{
      0xE0, "string", false, {{{"id", Field::number}, {"text", Field::bytes}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id,
                              std::span<const std::uint8_t> text) noexcept {
    return put_body(out, kKind.code, id, text);
  }
};

// More of the string with this number.
struct StringPart {
  static constexpr Kind kKind{
      0xE1, "string_part", false, {{{"id", Field::number}, {"text", Field::bytes}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id,
                              std::span<const std::uint8_t> text) noexcept {
    return put_body(out, kKind.code, id, text);
  }
};

}  // namespace whence::format
