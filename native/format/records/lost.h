// lost.h: a gap in a thread's events, where it lies.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct Lost {
  static constexpr Kind kKind{
      0x66,
      "lost",
      false,
      {{{"time", Field::time}, {"reason", Field::reason}, {"events", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t reason, std::uint64_t events) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, reason);
    return put_varint(out, events);
  }
};

}  // namespace whence::format
