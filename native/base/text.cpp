// text.cpp: see text.h.
#include "base/text.h"

namespace whence::base {
namespace {

std::uint32_t code_point(UnicodeView text, std::size_t i) noexcept {
  switch (text.width) {
    case 1: return static_cast<const std::uint8_t*>(text.data)[i];
    case 2: return static_cast<const std::uint16_t*>(text.data)[i];
    default: return static_cast<const std::uint32_t*>(text.data)[i];
  }
}

unsigned encoded_size(std::uint32_t point) noexcept {
  return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

std::uint8_t continuation(std::uint32_t bits) noexcept {
  return static_cast<std::uint8_t>(0x80 | (bits & 0x3F));
}

std::uint8_t* encode(std::uint32_t point, std::uint8_t* out) noexcept {
  if (point < 0x80) {
    *out++ = static_cast<std::uint8_t>(point);
  } else if (point < 0x800) {
    *out++ = static_cast<std::uint8_t>(0xC0 | (point >> 6));
    *out++ = continuation(point);
  } else if (point < 0x10000) {
    *out++ = static_cast<std::uint8_t>(0xE0 | (point >> 12));
    *out++ = continuation(point >> 6);
    *out++ = continuation(point);
  } else {
    *out++ = static_cast<std::uint8_t>(0xF0 | (point >> 18));
    *out++ = continuation(point >> 12);
    *out++ = continuation(point >> 6);
    *out++ = continuation(point);
  }
  return out;
}

struct Decoded {
  std::uint32_t point;
  unsigned size;  // 0: not UTF-8, not even with surrogates let through
};

Decoded decode(std::string_view text) noexcept {
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) return {first, 1};
  const unsigned size = first >= 0xF0 && first < 0xF8 ? 4
                        : first >= 0xE0               ? 3
                        : first >= 0xC0               ? 2
                                                      : 0;
  if (size == 0 || first >= 0xF8 || text.size() < size) return {0, 0};
  std::uint32_t point = first & (0x7Fu >> size);
  for (unsigned i = 1; i < size; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80) return {0, 0};
    point = (point << 6) | (byte & 0x3F);
  }
  if (point < kLeast[size] || point > 0x10FFFF) return {0, 0};
  return {point, size};
}

void append_escape(std::string& out, std::uint32_t unit) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 0xF];
}

// What JSON demands, what UTF-8 cannot carry, and what would end a script element or a line of one.
bool needs_escape(std::uint32_t point) noexcept {
  return point < 0x20 || point == 0x7F || (point >= 0xD800 && point < 0xE000) || point == '<' ||
         point == '>' || point == '&' || point == 0x2028 || point == 0x2029;
}

}  // namespace

std::size_t utf8_size(UnicodeView text) noexcept {
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.length; ++i) size += encoded_size(code_point(text, i));
  return size;
}

void write_utf8(UnicodeView text, std::uint8_t* out) noexcept {
  for (std::size_t i = 0; i < text.length; ++i) out = encode(code_point(text, i), out);
}

void append_utf8(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const Decoded next = decode(text);
    const bool surrogate = next.point >= 0xD800 && next.point < 0xE000;
    if (next.size == 0 || surrogate) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text.data(), next.size);
    }
    text.remove_prefix(next.size == 0 ? 1 : next.size);
  }
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const Decoded next = decode(text);
    if (next.size == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    if (next.point == '"' || next.point == '\\') {
      out += '\\';
      out += static_cast<char>(next.point);
    } else if (needs_escape(next.point)) {
      append_escape(out, next.point);
    } else {
      out.append(text.data(), next.size);
    }
    text.remove_prefix(next.size);
  }
  out += '"';
}

}  // namespace whence::base
