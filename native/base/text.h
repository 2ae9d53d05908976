// text.h: text as bytes. Python strings in, UTF-8 and JSON out.
//
// Threads: any; only arguments are touched.
// Allocates: the JSON functions append to a std::string; the others never.
// Fails by: std::bad_alloc from the std::string, nothing else: every input has an output.
//
// Python strings may hold lone surrogates (file names that are not UTF-8 arrive that way). They are
// kept as the three bytes UTF-8 would use for them, which Python reads back with "surrogatepass".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace whence::base {

// The storage of a Python string: `length` code points of `width` bytes (1, 2 or 4) each.
struct UnicodeView {
  const void* data = nullptr;
  std::size_t length = 0;
  unsigned width = 1;
};

[[nodiscard]] std::size_t utf8_size(UnicodeView text) noexcept;
// Writes exactly utf8_size(text) bytes.
void write_utf8(UnicodeView text, std::uint8_t* out) noexcept;

// Appends text as UTF-8: lone surrogates, and bytes that are not UTF-8 at all, become U+FFFD.
void append_utf8(std::string& out, std::string_view text);

// Appends a quoted JSON string. Lone surrogates become \uXXXX escapes and bytes that are not UTF-8
// at all become U+FFFD, so that the result is valid JSON and valid UTF-8 for any input.
void append_json_string(std::string& out, std::string_view text);

}  // namespace whence::base
