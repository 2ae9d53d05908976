// call.h: calls of Python functions: how a frame is entered, and how it is left.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
//
// What leaves a frame says no more than when: it belongs to the innermost frame that is open.
#pragma once

#include "format/encode.h"

namespace whence::format {

template <std::uint8_t kCode, const char* kName>
struct FrameEntered {
  static constexpr Kind kKind{kCode, kName, true, {{{"time", Field::time}, {"code", Field::code}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time,
                                                     std::uint64_t code) noexcept {
    *out++ = kCode;
    out = put_time(out, deltas, time);
    return put_varint(out, code);
  }
};

template <std::uint8_t kCode, const char* kName>
struct FrameLeft {
  static constexpr Kind kKind{kCode, kName, true, {{{"time", Field::time}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time) noexcept {
    *out++ = kCode;
    return put_time(out, deltas, time);
  }
};

namespace names {
inline constexpr char kCall[] = "call", kResume[] = "resume", kThrow[] = "throw",
                      kReturn[] = "return", kUnwind[] = "unwind", kYield[] = "yield",
                      kCCall[] = "c_call", kCReturn[] = "c_return";
}  // namespace names

using Return = FrameLeft<0x20, names::kReturn>;
using Unwind = FrameLeft<0x21, names::kUnwind>;  // by an exception
using Yield = FrameLeft<0x22, names::kYield>;
using CReturn = FrameLeft<0x23, names::kCReturn>;
using Call = FrameEntered<0x40, names::kCall>;
using Resume = FrameEntered<0x41, names::kResume>;
using Throw = FrameEntered<0x42, names::kThrow>;  // resumed by an exception

// A function written in C, which has a name but no code.
struct CCall {
  static constexpr Kind kKind{
      0x46, names::kCCall, true, {{{"time", Field::time}, {"name", Field::string}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time,
                                                     std::uint64_t name) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, name);
  }
};

}  // namespace whence::format
