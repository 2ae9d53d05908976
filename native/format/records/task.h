// task.h: tasks of an event loop, and what they wait for.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// A task was met: made, or found. It runs whenever the coroutine with that number does, until
// another begins under the number: so whoever enters the coroutine switches to the task.
struct Task {
  static constexpr Kind kKind{0xC3,
                              "task",
                              false,
                              {{{"time", Field::time},
                                {"task", Field::task},
                                {"parent", Field::task},
                                {"name", Field::string},
                                {"code", Field::code},
                                {"generator", Field::generator}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t task, std::uint64_t parent, std::uint64_t name,
                              std::uint64_t code, std::uint64_t generator) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, task);
    out = put_varint(out, parent);
    out = put_varint(out, name);
    out = put_varint(out, code);
    return put_generator(out, deltas, generator);
  }
};

// A task yields until another is done.
struct Awaits {
  static constexpr Kind kKind{
      0x6D,
      "awaits",
      true,
      {{{"time", Field::time}, {"task", Field::task}, {"awaited", Field::task}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t task, std::uint64_t awaited) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, task);
    return put_varint(out, awaited);
  }
};

}  // namespace whence::format
