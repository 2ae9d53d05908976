// code.h: what a piece of Python code says of itself, and stacks made of it.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct Code {
  static constexpr Kind kKind{0xC0,
                              "code",
                              false,
                              {{{"id", Field::code},
                                {"name", Field::string},
                                {"qualname", Field::string},
                                {"filename", Field::string},
                                {"first_line", Field::signed_},
                                {"line_table", Field::string}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id, std::uint64_t name,
                              std::uint64_t qualname, std::uint64_t filename,
                              std::int64_t first_line, std::uint64_t line_table) noexcept {
    *out++ = kKind.code;
    out = put_varint(out, id);
    out = put_varint(out, name);
    out = put_varint(out, qualname);
    out = put_varint(out, filename);
    out = put_varint(out, base::zigzag(first_line));
    return put_varint(out, line_table);
  }
};

// A stack is a frame and the stack that called it; 0 is the empty one.
struct Stack {
  static constexpr Kind kKind{0x82,
                              "stack",
                              false,
                              {{{"id", Field::stack},
                                {"parent", Field::stack},
                                {"code", Field::code},
                                {"offset", Field::signed_}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id, std::uint64_t parent,
                              std::uint64_t code, std::int64_t offset) noexcept {
    *out++ = kKind.code;
    out = put_varint(out, id);
    out = put_varint(out, parent);
    out = put_varint(out, code);
    return put_varint(out, base::zigzag(offset));
  }
};

}  // namespace whence::format
