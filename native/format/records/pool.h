// pool.h: memory of allocators that report their own: pools, by number.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
//
// A pool hands out blocks. It cuts them out of segments, which it has from somebody else: a device,
// the system.
#pragma once

#include "format/encode.h"

namespace whence::format {

// Numbers below are those of domains (memory.h), where both may stand.
inline constexpr std::uint32_t kFirstPool = 8;

// As metadata: what a pool is called.
struct PoolName {
  static constexpr Kind kKind{
      0x4C, "pool", false, {{{"id", Field::number}, {"name", Field::string}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id, std::uint64_t name) noexcept {
    *out++ = kKind.code;
    out = put_varint(out, id);
    return put_varint(out, name);
  }
};

template <std::uint8_t kCode, const char* kName>
struct PoolTakes {
  static constexpr Kind kKind{kCode,
                              kName,
                              true,
                              {{{"time", Field::time},
                                {"pool", Field::number},
                                {"address", Field::address},
                                {"size", Field::number},
                                {"stack", Field::near_stack}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t pool, std::uint64_t address, std::uint64_t size,
                              std::uint64_t stack) noexcept {
    *out++ = kCode;
    out = put_time(out, deltas, time);
    out = put_varint(out, pool);
    out = put_address(out, deltas, address);
    out = put_varint(out, size);
    return put_near_stack(out, deltas, stack);
  }
};

// `stack` is 0 unless stacks of frees were asked for.
template <std::uint8_t kCode, const char* kName>
struct PoolGives {
  static constexpr Kind kKind{kCode,
                              kName,
                              true,
                              {{{"time", Field::time},
                                {"pool", Field::number},
                                {"address", Field::address},
                                {"stack", Field::near_stack}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t pool, std::uint64_t address,
                              std::uint64_t stack) noexcept {
    *out++ = kCode;
    out = put_time(out, deltas, time);
    out = put_varint(out, pool);
    out = put_address(out, deltas, address);
    return put_near_stack(out, deltas, stack);
  }
};

namespace names {
inline constexpr char kPoolAllocated[] = "pool_allocated", kPoolFreed[] = "pool_freed",
                      kSegmentAllocated[] = "segment_allocated", kSegmentFreed[] = "segment_freed";
}  // namespace names

using PoolAllocated = PoolTakes<0xA2, names::kPoolAllocated>;
using PoolFreed = PoolGives<0x83, names::kPoolFreed>;
using SegmentAllocated = PoolTakes<0xA6, names::kSegmentAllocated>;
using SegmentFreed = PoolGives<0x86, names::kSegmentFreed>;

}  // namespace whence::format
