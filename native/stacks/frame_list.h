// frame_list.h: the frames of one capture, collected before they can be interned.
//
// Threads: one; lives on the C stack of a capture.
// Allocates: by mmap, for more frames than usual.
// Fails by: add() returns false and complete() turns false; what was added stays.
#pragma once

#include "base/growing_list.h"
#include "stacks/stack_table.h"

namespace whence::stacks {

class FrameList {
 public:
  struct Item {
    CodeId code;
    std::int32_t offset;
  };

  bool add(Item item) noexcept { return items_.add(item) || (complete_ = false); }
  void cut() noexcept { complete_ = false; }

  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] Item operator[](std::size_t i) const noexcept { return items_[i]; }

 private:
  base::GrowingList<Item, 128> items_;
  bool complete_ = true;
};

}  // namespace whence::stacks
