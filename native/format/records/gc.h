// gc.h: a run of the garbage collector, its begin and its end.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct GcBegin {
  static constexpr Kind kKind{
      0x44, "gc_begin", true, {{{"time", Field::time}, {"generation", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t generation) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, generation);
  }
};

// Says everything again that its begin said, because a ring may have taken that.
struct GcEnd {
  static constexpr Kind kKind{0xA4,
                              "gc_end",
                              true,
                              {{{"time", Field::time},
                                {"generation", Field::number},
                                {"collected", Field::number},
                                {"uncollectable", Field::number},
                                {"duration", Field::duration}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t generation, std::uint64_t collected,
                              std::uint64_t uncollectable, std::uint64_t duration) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, generation);
    out = put_varint(out, collected);
    out = put_varint(out, uncollectable);
    return put_varint(out, duration);
  }
};

}  // namespace whence::format
