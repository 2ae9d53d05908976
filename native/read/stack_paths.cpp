// stack_paths.cpp: see stack_paths.h.
#include "read/stack_paths.h"

namespace whence::read {

std::optional<std::uint32_t> StackPaths::depth(std::uint64_t stack) {
  if (stack == 0) return 0;
  if (names_.stack(stack) == nullptr) return std::nullopt;
  path_.clear();
  bool endless = false;
  std::uint32_t depth = 0;
  for (std::uint64_t id = stack; id != 0;) {
    const StackEntry* entry = names_.stack(id);
    if (entry == nullptr) break;
    // While on the way it counts as endless: whoever comes back to it is.
    const auto [known, is_new] = depths_.try_emplace(id, 0);
    if (!is_new) {
      depth = known->second;
      endless = depth == 0;
      break;
    }
    path_.push_back(id);
    id = entry->parent;
  }
  if (endless) return std::nullopt;
  for (auto id = path_.rbegin(); id != path_.rend(); ++id) depths_[*id] = ++depth;
  return depth;
}

}  // namespace whence::read
