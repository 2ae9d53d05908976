// handle.h: work of a lowered program, under the handle that leads back to its source.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// A table of handles, as handles.save() writes it, in parts; `table` is its number in the
// recording.
struct HandleTable {
  static constexpr Kind kKind{
      0xE4, "handle_table", false, {{{"table", Field::number}, {"part", Field::bytes}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t table,
                              std::span<const std::uint8_t> part) noexcept {
    return put_body(out, kKind.code, table, part);
  }
};

struct HandleEvent {
  static constexpr Kind kKind{0xC2,
                              "handle_event",
                              true,
                              {{{"time", Field::time},
                                {"table", Field::number},
                                {"handle", Field::signed_},
                                {"name", Field::string},
                                {"backend", Field::string},
                                {"duration", Field::duration}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t table, std::int64_t handle, std::uint64_t name,
                              std::uint64_t backend, std::uint64_t duration) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, table);
    out = put_varint(out, base::zigzag(handle));
    out = put_varint(out, name);
    out = put_varint(out, backend);
    return put_varint(out, duration);
  }
};

}  // namespace whence::format
