// task.h: tasks of an event loop, and which of them a thread runs.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct Task {
  static constexpr Kind kKind{0xA1,
                              "task",
                              false,
                              {{{"time", Field::time},
                                {"task", Field::task},
                                {"parent", Field::task},
                                {"name", Field::string},
                                {"code", Field::code}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t task, std::uint64_t parent, std::uint64_t name,
                              std::uint64_t code) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, task);
    out = put_varint(out, parent);
    out = put_varint(out, name);
    return put_varint(out, code);
  }
};

// From now on this thread runs that task; 0: none.
struct TaskSwitch {
  static constexpr Kind kKind{
      0x45, "task_switch", true, {{{"time", Field::time}, {"task", Field::task}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time,
                                                     std::uint64_t task) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, task);
  }
};

}  // namespace whence::format
