// layout.h: the fixed parts of a file with a table of handles, byte for byte (FORMAT.md).
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/checksum.h"

namespace whence::handles {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

inline constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'W', 'H', 'D', 'L', '\r', '\n', 0x1A};
inline constexpr std::uint16_t kMajor = 1;
inline constexpr std::uint16_t kMinor = 0;

using Namespace = std::array<std::uint8_t, 16>;

struct FileHeader {
  std::array<std::uint8_t, 8> magic = kMagic;
  std::uint16_t major = kMajor;
  std::uint16_t minor = kMinor;
  std::uint32_t parts = 0;
  std::uint64_t size = 0;
  std::uint32_t zero = 0;
  std::uint32_t checksum = 0;
};
static_assert(sizeof(FileHeader) == 32 && offsetof(FileHeader, checksum) == 28);

struct PartHeader {
  Namespace name_space{};
  std::uint64_t size = 0;
  std::uint32_t payload_checksum = 0;
  std::uint32_t checksum = 0;
};
static_assert(sizeof(PartHeader) == 32 && offsetof(PartHeader, checksum) == 28);

template <class Header>
[[nodiscard]] std::uint32_t checksum_of(const Header& header) noexcept {
  return base::checksum(&header, offsetof(Header, checksum));
}

}  // namespace whence::handles
