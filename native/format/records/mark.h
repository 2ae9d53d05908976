// mark.h: a moment with a name.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct Mark {
  static constexpr Kind kKind{
      0x43, "mark", true, {{{"time", Field::time}, {"name", Field::string}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time,
                                                     std::uint64_t name) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, name);
  }
};

}  // namespace whence::format
