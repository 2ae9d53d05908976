// line_map.h: what lines of generated code came from.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// A part is a run of varints: the number of the map, the newest of which counts for its file, then
// whole entries. FORMAT.md, "Generated code", has them one by one.
struct LineMap {
  static constexpr Kind kKind{
      0xE5, "line_map", false, {{{"file", Field::string}, {"part", Field::bytes}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t file,
                              std::span<const std::uint8_t> part) noexcept {
    return put_body(out, kKind.code, file, part);
  }
};

}  // namespace whence::format
