// hash.h: the mixing functions behind every table in the native core.
//
// Threads: any. Allocates: never. Fails by: it cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace whence::base {

// Folds a 64-bit word into a running hash: one multiplication to 128 bits, halves combined.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  const auto product =
      static_cast<unsigned __int128>(hash ^ 0x9E3779B97F4A7C15u) * (word ^ 0xD6E8FEB86659FD93u);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

[[nodiscard]] inline std::uint64_t hash_bytes(const void* data, std::size_t size) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t hash = size;
  for (; size >= 8; bytes += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = mix(hash, word);
  }
  std::uint64_t tail = 0;
  if (size != 0) std::memcpy(&tail, bytes, size);
  return mix(hash, tail);
}

}  // namespace whence::base
