// resident.h: how much memory the system holds for this process.
//
// Threads: any. Allocates: never. Fails by: 0. errno stays as it was.
#pragma once

#include <cstdint>

namespace whence::base {

// Bytes, of its own and of files. Takes a few microseconds.
[[nodiscard]] std::uint64_t resident_bytes() noexcept;

}  // namespace whence::base
