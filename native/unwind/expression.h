// expression.h: places that unwind tables give as small programs.
//
// Threads: any. Allocates: never. Fails by: nothing, where a program does what is not known here.
//
// Compilers use them for few things: functions that align their stack keep the CFA in memory, and
// stubs of the linker have it one word further from some instruction on. Which instruction it is,
// is known when a row is compiled. So a program is run on values of the form "register plus
// number", and what comes out is such a value, too.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/bytes.h"

namespace whence::unwind {

struct Place {
  enum class From : std::uint8_t { nothing, sp, fp };
  From from = From::nothing;
  bool indirect = false;  // what lies there, not the place itself
  std::int64_t offset = 0;
};

[[nodiscard]] std::optional<Place> evaluate(Bytes program, Address pc) noexcept;

}  // namespace whence::unwind
