// task.h: tasks of an event loop, and what they wait for.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// A task was met: made, or found. Its number tells it from others that live at the same time; the
// number of one that is gone may come back, with a record like this. It runs whenever the coroutine
// with that number does, until another begins under the number: so whoever enters the coroutine
// switches to the task.
template <std::uint8_t kCode, const char* kName, bool kNumbered>
struct TaskMet {
  static constexpr Kind kKind{
      kCode,
      kName,
      false,
      {{{"time", Field::time},
        {"task", Field::task},
        {"parent", Field::task},
        kNumbered ? FieldInfo{"number", Field::number} : FieldInfo{"name", Field::string},
        {"code", Field::code},
        {"generator", Field::generator}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t task, std::uint64_t parent, std::uint64_t called,
                              std::uint64_t code, std::uint64_t generator) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_task(out, deltas, task);
    out = put_task(out, deltas, parent);
    out = put_varint(out, called);
    out = put_varint(out, code);
    return put_generator(out, deltas, generator);
  }
};

namespace names {
inline constexpr char kTask[] = "task", kNumberedTask[] = "numbered_task";
}  // namespace names

using Task = TaskMet<0xC3, names::kTask, false>;
// Its name is "Task-" and the number, as asyncio calls them unless it is told otherwise.
using NumberedTask = TaskMet<0xC4, names::kNumberedTask, true>;

// The newest task with that number has got another name.
struct TaskName {
  static constexpr Kind kKind{
      0x6F,
      "task_name",
      false,
      {{{"time", Field::time}, {"task", Field::task}, {"name", Field::string}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t task, std::uint64_t name) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_task(out, deltas, task);
    return put_varint(out, name);
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
    out = put_task(out, deltas, task);
    return put_task(out, deltas, awaited);
  }
};

}  // namespace whence::format
