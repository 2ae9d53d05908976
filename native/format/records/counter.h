// counter.h: the value of a named quantity, from now on.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct Counter {
  static constexpr Kind kKind{
      0x60,
      "counter",
      true,
      {{{"time", Field::time}, {"name", Field::string}, {"value", Field::signed_}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t name,
                                                     std::int64_t value) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, name);
    return put_varint(out, base::zigzag(value));
  }
};

struct RealCounter {
  static constexpr Kind kKind{
      0x61,
      "counter",
      true,
      {{{"time", Field::time}, {"name", Field::string}, {"value", Field::real}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t name,
                                                     double value) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, name);
    return put_varint(out, real_to_bits(value));
  }
};

}  // namespace whence::format
