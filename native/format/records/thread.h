// thread.h: threads, and whose events a chunk holds from here on.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// A thread was met. `known` is 1 if it ran already when the recording began, or when it was first
// heard of: then `time` is not its start.
struct Thread {
  static constexpr Kind kKind{0xA0,
                              "thread",
                              false,
                              {{{"time", Field::time},
                                {"thread", Field::thread},
                                {"os_id", Field::number},
                                {"name", Field::string},
                                {"known", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t thread, std::uint64_t os_id, std::uint64_t name,
                              bool known) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, thread);
    out = put_varint(out, os_id);
    out = put_varint(out, name);
    return put_varint(out, known ? 1 : 0);
  }
};

struct ThreadName {
  static constexpr Kind kKind{
      0x63,
      "thread_name",
      false,
      {{{"time", Field::time}, {"thread", Field::thread}, {"name", Field::string}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t thread, std::uint64_t name) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, thread);
    return put_varint(out, name);
  }
};

// `events`: how many it produced in all.
struct ThreadEnd {
  static constexpr Kind kKind{
      0x64,
      "thread_end",
      false,
      {{{"time", Field::time}, {"thread", Field::thread}, {"events", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t thread, std::uint64_t events) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, thread);
    return put_varint(out, events);
  }
};

// The chunk goes on with events of another thread: a thread that ends leaves what is left of its
// chunk to the next one. Deltas count from 0 again, but for the time.
struct Owner {
  static constexpr Kind kKind{
      0x65,
      "owner",
      false,
      {{{"time", Field::time}, {"thread", Field::thread}, {"first_event", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t thread, std::uint64_t first_event) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    deltas.start_over();
    out = put_varint(out, thread);
    return put_varint(out, first_event);
  }
};

}  // namespace whence::format
