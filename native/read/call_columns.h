// call_columns.h: calls as columns, a batch at a time.
//
// Threads: as the reader of calls. Allocates: what the reader does; the columns are the caller's.
// Fails by: Next; std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "read/calls.h"
#include "read/functions.h"

namespace whence::read {

// Where each column begins. Times are nanoseconds; 0 stands for no task, parent or generator, and
// a function is a number of `Functions`.
struct CallColumns {
  std::int64_t *start, *duration, *own;
  std::uint64_t *number, *parent, *task, *generator, *count;
  std::uint32_t *depth, *function, *thread;
  std::uint8_t *entered, *left;  // as the enums say

  static constexpr std::size_t kWide = 8, kNarrow = 3, kBytes = 2;  // how many of each
  static constexpr std::size_t kRow = kWide * 8 + kNarrow * 4 + kBytes;

  // Columns for so many rows, one after the other in kRow bytes a row, the wide ones first.
  [[nodiscard]] static CallColumns in(std::uint8_t* memory, std::size_t rows) noexcept;
};

// Writes calls as they end, up to so many; `rows` is how many there were. Next::record: there may
// be more.
[[nodiscard]] Next fill(CallReader& reader, Functions& functions, const CallColumns& columns,
                        std::size_t most, std::size_t& rows);

}  // namespace whence::read
