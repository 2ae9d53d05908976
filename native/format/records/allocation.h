// allocation.h: memory taken and given back.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct Allocation {
  static constexpr Kind kKind{0xA2,
                              "allocation",
                              true,
                              {{{"time", Field::time},
                                {"domain", Field::number},
                                {"address", Field::address},
                                {"size", Field::number},
                                {"stack", Field::stack}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t domain,
                                                     std::uint64_t address, std::uint64_t size,
                                                     std::uint64_t stack) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, domain);
    out = put_address(out, deltas, address);
    out = put_varint(out, size);
    return put_varint(out, stack);
  }
};

// `stack` is 0 unless stacks of frees were asked for.
struct Free {
  static constexpr Kind kKind{0x83,
                              "free",
                              true,
                              {{{"time", Field::time},
                                {"domain", Field::number},
                                {"address", Field::address},
                                {"stack", Field::stack}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t domain,
                                                     std::uint64_t address,
                                                     std::uint64_t stack) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, domain);
    out = put_address(out, deltas, address);
    return put_varint(out, stack);
  }
};

}  // namespace whence::format
