// varint.h: unsigned numbers in as few bytes as they need, seven bits a byte, lowest first.
//
// Threads: any; only arguments are touched. Allocates: never.
// Fails by: get_varint() returns nullptr for bytes that are no number, or that end too early.
#pragma once

#include <cstdint>

namespace whence::base {

inline constexpr unsigned kLongestVarint = 10;

// Writes at most kLongestVarint bytes. Most numbers are deltas of one or two bytes.
[[gnu::always_inline]] inline std::uint8_t* put_varint(std::uint8_t* out,
                                                       std::uint64_t value) noexcept {
  while (value >= 0x80) {
    *out++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

// Reads one number from [in, end); where the next begins.
[[nodiscard]] inline const std::uint8_t* get_varint(const std::uint8_t* in, const std::uint8_t* end,
                                                    std::uint64_t& value) noexcept {
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < 64 && in != end; shift += 7) {
    const std::uint64_t byte = *in++;
    if (shift == 63 && byte > 1) return nullptr;
    result |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      value = result;
      return in;
    }
  }
  return nullptr;
}

// Small numbers of either sign become small unsigned ones: 0, -1, 1, -2 ... are 0, 1, 2, 3 ...
[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

}  // namespace whence::base
