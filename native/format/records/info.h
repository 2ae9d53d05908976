// info.h: facts about the recording as a whole: a key and a text.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct Info {
  static constexpr Kind kKind{
      0xE3, "info", false, {{{"key", Field::string}, {"value", Field::bytes}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t key,
                              std::span<const std::uint8_t> value) noexcept {
    return put_body(out, kKind.code, key, value);
  }
};

}  // namespace whence::format
