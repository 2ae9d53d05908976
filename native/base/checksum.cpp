// checksum.cpp: see checksum.h. x86-64 has an instruction for it from SSE 4.2 on; elsewhere a table
// does.
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
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(const std::uint8_t* data, std::size_t size,
                                                       std::uint32_t crc) noexcept {
  std::uint64_t wide = crc;
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
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
