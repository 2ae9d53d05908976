// kinds.h: every kind of record that this version knows.
//
// Threads: constants. Allocates: never. Fails by: nullptr for a kind that is not known.
//
// To add one: a file in records/, its line in kinds.cpp, its row in FORMAT.md.
#pragma once

#include <array>
#include <span>

#include "format/kind.h"

namespace whence::format {

struct KindInfo {
  const Kind* kind = nullptr;
  bool plain = false;  // a time, and numbers that mean what they are
};
extern const std::array<KindInfo, 256> kKinds;

[[nodiscard]] inline const Kind* kind_of(std::uint8_t code) noexcept {
  return kKinds[code].kind;
}
[[nodiscard]] std::span<const Kind* const> all_kinds() noexcept;

}  // namespace whence::format
