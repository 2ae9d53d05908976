// arrow_table.h: a table that is read batch by batch, as Arrow arrays.
//
// Threads: a table belongs to one; the arrays may be released by any. Allocates: a batch at a time,
// freed by whoever releases its last array. Fails by: Next; std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>

#include "read/arrow.h"
#include "read/cursor.h"

namespace whence::read {

class ArrowTable {
 public:
  ArrowTable() = default;
  virtual ~ArrowTable() = default;
  ArrowTable(const ArrowTable&) = delete;
  ArrowTable& operator=(const ArrowTable&) = delete;

  // The next batch. Next::end: there is none, and `out` is not touched.
  [[nodiscard]] virtual Next next(ArrowArray& out) = 0;
  // If a deadline ended it: all before this time was read.
  [[nodiscard]] virtual std::optional<std::int64_t> read_until() const noexcept = 0;
};

}  // namespace whence::read
