// call.h: calls of functions: how a frame is entered, and how it is left.
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

// A frame that can be left and entered again: of a generator, a coroutine or an asynchronous
// generator. Its number tells it from others that live at the same time; the number of one that is
// gone may come back, and then the frame is entered by a call.
template <std::uint8_t kCode, const char* kName>
struct GeneratorEntered {
  static constexpr Kind kKind{
      kCode,
      kName,
      true,
      {{{"time", Field::time}, {"code", Field::code}, {"generator", Field::generator}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t code,
                                                     std::uint64_t generator) noexcept {
    *out++ = kCode;
    out = put_time(out, deltas, time);
    out = put_varint(out, code);
    return put_generator(out, deltas, generator);
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
inline constexpr char kCall[] = "call", kResume[] = "resume", kThrow[] = "throw", kOpen[] = "open",
                      kReturn[] = "return", kUnwind[] = "unwind", kYield[] = "yield",
                      kGone[] = "gone", kUnstarted[] = "unstarted", kCReturn[] = "c_return",
                      kCRaise[] = "c_raise";
}  // namespace names

using Return = FrameLeft<0x20, names::kReturn>;
using Unwind = FrameLeft<0x21, names::kUnwind>;  // by an exception
using Yield = FrameLeft<0x22, names::kYield>;
using CReturn = FrameLeft<0x23, names::kCReturn>;
using CRaise = FrameLeft<0x24, names::kCRaise>;
using Gone = FrameLeft<0x25, names::kGone>;            // before this time, nobody saw how
using Unstarted = FrameLeft<0x26, names::kUnstarted>;  // by an exception, before it ran

using Call = FrameEntered<0x40, names::kCall>;
using Open = FrameEntered<0x47, names::kOpen>;  // before this time, nobody saw how
using GeneratorCall = GeneratorEntered<0x67, names::kCall>;
using Resume = GeneratorEntered<0x68, names::kResume>;
using Throw = GeneratorEntered<0x69, names::kThrow>;  // resumed by an exception
using GeneratorOpen = GeneratorEntered<0x6A, names::kOpen>;

// A function written in C, which has a name but no code.
struct CCall {
  static constexpr Kind kKind{
      0x46, "c_call", true, {{{"time", Field::time}, {"name", Field::string}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time,
                                                     std::uint64_t name) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, name);
  }
};

// Short calls by the innermost open frame, which called nothing in turn: how many since the record
// before this one, and how long they took together.
struct Folded {
  static constexpr Kind kKind{0x84,
                              "folded",
                              true,
                              {{{"time", Field::time},
                                {"code", Field::code},
                                {"calls", Field::number},
                                {"duration", Field::duration}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t code, std::uint64_t calls,
                              std::uint64_t duration) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, code);
    out = put_varint(out, calls);
    return put_varint(out, duration);
  }
};

}  // namespace whence::format
