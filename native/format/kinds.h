// kinds.h: every kind of record that this version knows.
//
// Threads: constants. Allocates: never. Fails by: nullptr for a kind that is not known.
//
// To add one: a file in records/, its line in kinds.cpp, its row in FORMAT.md.
#pragma once

#include <span>

#include "format/kind.h"

namespace whence::format {

[[nodiscard]] const Kind* kind_of(std::uint8_t code) noexcept;
[[nodiscard]] std::span<const Kind* const> all_kinds() noexcept;

}  // namespace whence::format
