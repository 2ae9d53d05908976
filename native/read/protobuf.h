// protobuf.h: fields of protocol buffer messages, appended to a string.
//
// Threads: any; only arguments are touched. Allocates: the string does. Fails by: std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/varint.h"

namespace whence::read {

inline void append_varint(std::string& out, std::uint64_t value) {
  if (value < 0x80) [[likely]] {
    out.push_back(static_cast<char>(value));
    return;
  }
  std::uint8_t bytes[base::kLongestVarint];
  const std::uint8_t* end = base::put_varint(bytes, value);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
}

inline void append_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_varint(out, std::uint64_t{field} << 3);
  append_varint(out, value);
}

inline void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_varint(out, std::uint64_t{field} << 3 | 2);
  append_varint(out, bytes.size());
  out.append(bytes);
}

}  // namespace whence::read
