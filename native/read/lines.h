// lines.h: where an instruction is in its source, decoded from what a recording has of its code.
//
// Threads: an instance belongs to one. Allocates: 160 KB, at once. Fails by: nullopt, and a
// location without a line.
//
// A line table has to be decoded from its beginning, and a hostile file could ask for that millions
// of times. Programs raise and allocate at few places: those are remembered, and decoding has a
// budget.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/line_table.h"
#include "read/budget.h"
#include "read/names.h"

namespace whence::read {

class Lines {
 public:
  // The names outlive it.
  Lines(const Names& names, std::uint64_t file_size);

  [[nodiscard]] std::optional<std::int32_t> line(std::uint64_t code, std::uint64_t offset);
  // An offset of -1 is before the first instruction.
  [[nodiscard]] base::Location location(std::uint64_t code, std::int64_t offset);

 private:
  struct Known {
    std::uint64_t code;
    std::int64_t offset;
    base::Location place;
    bool known;
  };

  [[nodiscard]] base::Location decode(std::uint64_t code, std::int64_t offset);

  const Names& names_;
  Budget bytes_;
  std::vector<Known> known_;
};

}  // namespace whence::read
