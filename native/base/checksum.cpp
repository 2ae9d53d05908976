// checksum.cpp: see checksum.h. x86-64 has an instruction for it from SSE 4.2 on; elsewhere a table
// does.
//
// The instruction takes three cycles, and one can begin in each. So long runs of bytes are taken as
// three lanes, side by side. What a lane comes to counts as if all behind it were zeros, which a
// table says, and then they are added.
#include "base/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace whence::base {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() noexcept {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

std::uint32_t by_table(const std::uint8_t* data, std::size_t size, std::uint32_t crc) noexcept {
  for (; size != 0; ++data, --size) crc = (crc >> 8) ^ kTable[(crc ^ *data) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
constexpr std::size_t kLane = 1024;  // bytes

// What a lane of zeros makes of each byte of a checksum.
using Zeros = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Zeros make_zeros() noexcept {
  Zeros zeros{};
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kLane; ++i) crc = (crc >> 8) ^ kTable[crc & 0xFF];
    auto& table = zeros[bit / 8];
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      if ((byte >> bit % 8 & 1) != 0) table[byte] ^= crc;
    }
  }
  return zeros;
}

constexpr Zeros kZeros = make_zeros();

std::uint32_t followed_by_zeros(std::uint32_t crc) noexcept {
  return kZeros[0][crc & 0xFF] ^ kZeros[1][crc >> 8 & 0xFF] ^ kZeros[2][crc >> 16 & 0xFF] ^
         kZeros[3][crc >> 24];
}

std::uint64_t word_at(const std::uint8_t* data) noexcept {
  std::uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

[[gnu::target("sse4.2")]] std::uint32_t by_instruction(const std::uint8_t* data, std::size_t size,
                                                       std::uint32_t crc) noexcept {
  for (; size >= 3 * kLane; data += 3 * kLane, size -= 3 * kLane) {
    std::uint64_t first = crc, second = 0, third = 0;
    for (std::size_t i = 0; i < kLane; i += 8) {
      first = _mm_crc32_u64(first, word_at(data + i));
      second = _mm_crc32_u64(second, word_at(data + kLane + i));
      third = _mm_crc32_u64(third, word_at(data + 2 * kLane + i));
    }
    crc = followed_by_zeros(static_cast<std::uint32_t>(first)) ^ static_cast<std::uint32_t>(second);
    crc = followed_by_zeros(crc) ^ static_cast<std::uint32_t>(third);
  }
  std::uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) wide = _mm_crc32_u64(wide, word_at(data));
  crc = static_cast<std::uint32_t>(wide);
  for (; size != 0; ++data, --size) crc = _mm_crc32_u8(crc, *data);
  return crc;
}
#endif

}  // namespace

std::uint32_t checksum(const void* data, std::size_t size, std::uint32_t before) noexcept {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(bytes, size, ~before);
#endif
  return ~by_table(bytes, size, ~before);
}

}  // namespace whence::base
