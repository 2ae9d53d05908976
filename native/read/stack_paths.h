// stack_paths.h: how deep the stacks of a recording are, whatever its metadata say.
//
// Threads: an instance belongs to one. Allocates: some 40 bytes for each stack asked for, and for
// each on its way. Fails by: nullopt; std::bad_alloc.
//
// A walk from a stack along its parents ends at 0 or at a parent that is not known; or never, in a
// file that lies, and then there is no such stack. Depths are kept, so that all walks together
// take as many steps as there are stacks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "read/names.h"

namespace whence::read {

class StackPaths {
 public:
  explicit StackPaths(const Names& names) noexcept : names_(names) {}

  [[nodiscard]] std::optional<std::uint32_t> depth(std::uint64_t stack);

 private:
  const Names& names_;
  IdMap<std::uint32_t> depths_;  // 0: its parents never end
  std::vector<std::uint64_t> path_;
};

}  // namespace whence::read
