// pools.h: memory of allocators that report their own: blocks, segments, and what could not be had.
//
// Threads: any, with the GIL or without, under any lock of the caller's; not inside an allocator of
// Python's, where nothing is told, since only the outermost allocator counts.
// Allocates: at first sight of a name or of code, as memory.h.
// Fails by: 0 from pool_named(); events that cannot be kept are counted as dropped.
//
// A pool is a number for a name, and lasts as long as the process. Its events are recorded while
// memory is. Times are exact, whoever holds what: a pool is used by threads without the GIL.
#pragma once

#include <cstdint>

#include "base/byte_pool.h"

namespace whence::probes {

using Pool = std::uint32_t;  // 0: none; nothing is told of it

inline constexpr std::uint64_t kNotKnown = UINT64_MAX;

// The same number for the same name, one that base::names() keeps. 0 for no name, and for more
// names than there is room for.
[[nodiscard]] Pool pool_named(base::BytePool::Ref name) noexcept;

void pool_allocated(Pool pool, std::uint64_t address, std::uint64_t size) noexcept;
void pool_freed(Pool pool, std::uint64_t address) noexcept;
void segment_allocated(Pool pool, std::uint64_t address, std::uint64_t size) noexcept;
void segment_freed(Pool pool, std::uint64_t address) noexcept;
// `available` may be kNotKnown.
void pool_out_of_memory(Pool pool, std::uint64_t size, std::uint64_t available) noexcept;

}  // namespace whence::probes
