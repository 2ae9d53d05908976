// exception.h: exceptions: where one is raised, and where it is handled.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// In the innermost open frame, at the instruction at `offset` of its code. `type` is a name.
template <std::uint8_t kCode, const char* kName>
struct ExceptionSeen {
  static constexpr Kind kKind{
      kCode,
      kName,
      true,
      {{{"time", Field::time}, {"type", Field::string}, {"offset", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t type, std::uint64_t offset) noexcept {
    *out++ = kCode;
    out = put_time(out, deltas, time);
    out = put_varint(out, type);
    return put_varint(out, offset);
  }
};

namespace names {
inline constexpr char kRaised[] = "raised", kHandled[] = "handled";
}  // namespace names

using Raised = ExceptionSeen<0x6B, names::kRaised>;
using Handled = ExceptionSeen<0x6C, names::kHandled>;

}  // namespace whence::format
