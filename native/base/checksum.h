// checksum.h: CRC-32C (Castagnoli), the checksum of everything that whence writes.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include <cstddef>
#include <cstdint>

namespace whence::base {

// The checksum of these bytes; with `before`, of the bytes that gave it followed by these.
[[nodiscard]] std::uint32_t checksum(const void* data, std::size_t size,
                                     std::uint32_t before = 0) noexcept;

}  // namespace whence::base
