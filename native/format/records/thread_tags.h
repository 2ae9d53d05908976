// thread_tags.h: what a thread has said about all that it does.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
//
// They hold for what follows in the chunk, until others are told or another thread goes on. Each
// chunk of a thread that has some begins with them, so that it can be read alone.
#pragma once

#include "format/encode.h"

namespace whence::format {

// `tags` is the text of a JSON object with its keys sorted; 0: none.
struct ThreadTags {
  static constexpr Kind kKind{
      0x4D, "tags", false, {{{"time", Field::time}, {"tags", Field::string}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t tags) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    return put_varint(out, tags);
  }
};

}  // namespace whence::format
