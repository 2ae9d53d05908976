// handle.h: work of a lowered program, under the handle that leads back to its source.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// Tables of handles, as handles.save() writes them, one after the other, in parts.
struct HandleTable {
  static constexpr Kind kKind{
      0xE4, "handle_table", false, {{{"namespace", Field::string}, {"part", Field::bytes}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t name_space,
                              std::span<const std::uint8_t> part) noexcept {
    return put_body(out, kKind.code, name_space, part);
  }
};

// From now on, there may be such events.
struct WorkOn {
  static constexpr Kind kKind{0x2A, "work_on", false, {{{"time", Field::time}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time) noexcept {
    *out++ = kKind.code;
    return put_time(out, deltas, time);
  }
};

// `backend` is the namespace of the handle, if that was told, a colon, and the backend's name.
// Work is told of after it was done, by a clock that others read too: so `ended`, how long ago that
// was, and `duration` are nanoseconds.
struct HandleEvent {
  static constexpr Kind kKind{0xC2,
                              "handle_event",
                              true,
                              {{{"time", Field::time},
                                {"backend", Field::string},
                                {"handle", Field::signed_},
                                {"name", Field::string},
                                {"ended", Field::number},
                                {"duration", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t backend, std::int64_t handle, std::uint64_t name,
                              std::uint64_t ended, std::uint64_t duration) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, backend);
    out = put_varint(out, base::zigzag(handle));
    out = put_varint(out, name);
    out = put_varint(out, ended);
    return put_varint(out, duration);
  }
};

}  // namespace whence::format
