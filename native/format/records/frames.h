// frames.h: which frames are open, where that cannot be told from calls: at the beginning, and at
// the beginning of each chunk, since a ring may have taken those before it.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// In a chunk of events: the open frames of its thread are these, and no others.
struct Frames {
  static constexpr Kind kKind{
      0x48, "frames", false, {{{"time", Field::time}, {"stack", Field::stack}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t stack) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, stack);
  }
};

// The same in metadata, of a thread that does not say it of itself.
struct ThreadFrames {
  static constexpr Kind kKind{
      0x6E,
      "thread_frames",
      false,
      {{{"time", Field::time}, {"thread", Field::thread}, {"stack", Field::stack}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t thread, std::uint64_t stack) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, thread);
    return put_varint(out, stack);
  }
};

// After `frames`: the open frame at that level, counted from the outermost, which is 1, belongs to
// this generator, coroutine or asynchronous generator.
struct FrameGenerator {
  static constexpr Kind kKind{
      0x70,
      "frame_generator",
      false,
      {{{"time", Field::time}, {"level", Field::number}, {"generator", Field::generator}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t level, std::uint64_t generator) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, level);
    return put_generator(out, deltas, generator);
  }
};

// The same after `thread_frames`.
struct ThreadGenerator {
  static constexpr Kind kKind{0x85,
                              "thread_generator",
                              false,
                              {{{"time", Field::time},
                                {"thread", Field::thread},
                                {"level", Field::number},
                                {"generator", Field::generator}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t thread, std::uint64_t level,
                              std::uint64_t generator) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, thread);
    out = put_varint(out, level);
    return put_generator(out, deltas, generator);
  }
};

template <std::uint8_t kCode, const char* kName>
struct CallsSwitch {
  static constexpr Kind kKind{kCode, kName, false, {{{"time", Field::time}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time) noexcept {
    *out++ = kCode;
    return put_time(out, deltas, time);
  }
};

namespace names {
inline constexpr char kCallsOn[] = "calls_on", kCallsOff[] = "calls_off";
}  // namespace names

// Calls are recorded from the one to the other, in all threads. Whatever is open when they go off
// is open no more, as far as anybody knows.
using CallsOn = CallsSwitch<0x27, names::kCallsOn>;
using CallsOff = CallsSwitch<0x28, names::kCallsOff>;

}  // namespace whence::format
