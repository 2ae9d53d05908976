// memory.h: blocks of memory taken, moved and given back.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
//
// What gives a block back is written before that happens, what takes one afterwards: so a block
// that another thread is given at once follows in time. A block that moves is given back and taken.
#pragma once

#include "format/encode.h"

namespace whence::format {

// Who hands out a block: CPython's three domains, the C library, the system.
enum class Domain : std::uint8_t { raw, mem, obj, malloc, mmap };
inline constexpr std::size_t kDomains = 5;

namespace detail {

[[gnu::always_inline]] inline std::uint8_t* put_block(std::uint8_t* out, Deltas& deltas,
                                                      std::uint64_t time, std::uint64_t address,
                                                      std::uint64_t size,
                                                      std::uint64_t stack) noexcept {
  out = put_time(out, deltas, time);
  out = put_address(out, deltas, address);
  out = put_varint(out, size);
  return put_near_stack(out, deltas, stack);
}

}  // namespace detail

template <std::uint8_t kCode, const char* kName>
struct BlockTaken {
  static constexpr Kind kKind{kCode,
                              kName,
                              true,
                              {{{"time", Field::time},
                                {"address", Field::address},
                                {"size", Field::number},
                                {"stack", Field::near_stack}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t address,
                                                     std::uint64_t size,
                                                     std::uint64_t stack) noexcept {
    *out++ = kCode;
    return detail::put_block(out, deltas, time, address, size, stack);
  }
};

template <std::uint8_t kCode, const char* kName>
struct BlockNamed {
  static constexpr Kind kKind{
      kCode, kName, true, {{{"time", Field::time}, {"address", Field::address}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time,
                                                     std::uint64_t address) noexcept {
    *out++ = kCode;
    out = put_time(out, deltas, time);
    return put_address(out, deltas, address);
  }
};

namespace names {
inline constexpr char kRawAllocated[] = "raw_allocated", kMemAllocated[] = "mem_allocated",
                      kObjAllocated[] = "obj_allocated", kMallocAllocated[] = "malloc_allocated",
                      kMmapAllocated[] = "mmap_allocated", kRawMoved[] = "raw_moved",
                      kMemMoved[] = "mem_moved", kObjMoved[] = "obj_moved",
                      kMallocMoved[] = "malloc_moved", kMmapMoved[] = "mmap_moved",
                      kFreed[] = "freed", kNotFreed[] = "not_freed";
}  // namespace names

// In the order of `Domain`: kinds follow one another.
inline constexpr std::uint8_t kAllocatedCode = 0x88, kMovedCode = 0x90;
using RawAllocated = BlockTaken<kAllocatedCode + 0, names::kRawAllocated>;
using MemAllocated = BlockTaken<kAllocatedCode + 1, names::kMemAllocated>;
using ObjAllocated = BlockTaken<kAllocatedCode + 2, names::kObjAllocated>;
using MallocAllocated = BlockTaken<kAllocatedCode + 3, names::kMallocAllocated>;
using MmapAllocated = BlockTaken<kAllocatedCode + 4, names::kMmapAllocated>;
using RawMoved = BlockTaken<kMovedCode + 0, names::kRawMoved>;
using MemMoved = BlockTaken<kMovedCode + 1, names::kMemMoved>;
using ObjMoved = BlockTaken<kMovedCode + 2, names::kObjMoved>;
using MallocMoved = BlockTaken<kMovedCode + 3, names::kMallocMoved>;
using MmapMoved = BlockTaken<kMovedCode + 4, names::kMmapMoved>;

using Freed = BlockNamed<0x49, names::kFreed>;
// It was to be moved, and could not be: it is still there.
using NotFreed = BlockNamed<0x4A, names::kNotFreed>;

// The same as `freed`, where stacks of these were asked for.
struct FreedAt {
  static constexpr Kind kKind{
      0x71,
      "freed",
      true,
      {{{"time", Field::time}, {"address", Field::address}, {"stack", Field::near_stack}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t address,
                                                     std::uint64_t stack) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_address(out, deltas, address);
    return put_near_stack(out, deltas, stack);
  }
};

// Addresses that were mapped by mmap are so no longer: `size` bytes from there, whatever mappings
// they were of. `stack` is 0 unless stacks of frees were asked for.
struct Unmapped {
  static constexpr Kind kKind{0x97,
                              "unmapped",
                              true,
                              {{{"time", Field::time},
                                {"address", Field::address},
                                {"size", Field::number},
                                {"stack", Field::near_stack}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t address, std::uint64_t size,
                              std::uint64_t stack) noexcept {
    *out++ = kKind.code;
    return detail::put_block(out, deltas, time, address, size, stack);
  }
};

// Somebody asked for memory and got none. `domain` is the number of a Domain, or of a pool;
// `available` is what there was and one more, or 0 if that is not known.
struct OutOfMemory {
  static constexpr Kind kKind{0xA5,
                              "out_of_memory",
                              true,
                              {{{"time", Field::time},
                                {"domain", Field::number},
                                {"size", Field::number},
                                {"available", Field::number},
                                {"stack", Field::near_stack}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t domain, std::uint64_t size, std::uint64_t available,
                              std::uint64_t stack) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, domain);
    out = put_varint(out, size);
    out = put_varint(out, available);
    return put_near_stack(out, deltas, stack);
  }
};

// What the system holds in memory for the process.
struct Resident {
  static constexpr Kind kKind{
      0x4B, "resident", true, {{{"time", Field::time}, {"bytes", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t bytes) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, bytes);
  }
};

// From here on the events of these domains are recorded (a bit for each, by number), in this
// detail.
struct MemoryOn {
  static constexpr Kind kKind{
      0x72,
      "memory_on",
      false,
      {{{"time", Field::time}, {"domains", Field::number}, {"detail", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t domains, std::uint64_t detail) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, domains);
    return put_varint(out, detail);
  }
};

struct MemoryOff {
  static constexpr Kind kKind{0x29, "memory_off", false, {{{"time", Field::time}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time) noexcept {
    *out++ = kKind.code;
    return put_time(out, deltas, time);
  }
};

}  // namespace whence::format
