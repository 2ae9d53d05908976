// in_use.h: the blocks of memory that are in use at a time, of a recording without their history.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
//
// A state is a `memory_state` and the blocks that follow it, all by one thread. What was told as in
// use before it, by an earlier state, is so no longer unless it is told again.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct MemoryState {
  static constexpr Kind kKind{
      0x4E, "memory_state", false, {{{"time", Field::time}, {"blocks", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t blocks) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, blocks);
  }
};

// `owner` took it, `age` ticks before this.
template <std::uint8_t kCode, const char* kName>
struct BlockInUse {
  static constexpr Kind kKind{kCode,
                              kName,
                              true,
                              {{{"time", Field::time},
                                {"owner", Field::thread},
                                {"address", Field::address},
                                {"size", Field::number},
                                {"stack", Field::near_stack},
                                {"age", Field::duration}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t owner, std::uint64_t address, std::uint64_t size,
                              std::uint64_t stack, std::uint64_t taken) noexcept {
    *out++ = kCode;
    out = put_time(out, deltas, time);
    out = put_varint(out, owner);
    out = put_address(out, deltas, address);
    out = put_varint(out, size);
    out = put_near_stack(out, deltas, stack);
    return put_varint(out, time > taken ? time - taken : 0);
  }
};

namespace names {
inline constexpr char kRawInUse[] = "raw_in_use", kMemInUse[] = "mem_in_use",
                      kObjInUse[] = "obj_in_use", kMallocInUse[] = "malloc_in_use",
                      kMmapInUse[] = "mmap_in_use";
}  // namespace names

// In the order of `Domain`.
inline constexpr std::uint8_t kInUseCode = 0xC8;
using RawInUse = BlockInUse<kInUseCode + 0, names::kRawInUse>;
using MemInUse = BlockInUse<kInUseCode + 1, names::kMemInUse>;
using ObjInUse = BlockInUse<kInUseCode + 2, names::kObjInUse>;
using MallocInUse = BlockInUse<kInUseCode + 3, names::kMallocInUse>;
using MmapInUse = BlockInUse<kInUseCode + 4, names::kMmapInUse>;

}  // namespace whence::format
