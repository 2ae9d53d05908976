// frame_list.h: the frames of one capture, collected before they can be interned.
//
// Threads: one; lives on the C stack of a capture.
// Allocates: by mmap, beyond kUsual frames.
// Fails by: add() returns false and complete() turns false; what was added stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/pages.h"
#include "stacks/stack_table.h"

namespace whence::stacks {

class FrameList {
 public:
  struct Item {
    CodeId code;
    std::int32_t offset;
  };

  FrameList() noexcept = default;
  ~FrameList() {
    if (items_ != usual_) base::unmap_pages(items_, room_ * sizeof(Item));
  }
  FrameList(const FrameList&) = delete;
  FrameList& operator=(const FrameList&) = delete;

  bool add(Item item) noexcept {
    if (size_ == room_ && !grow()) return complete_ = false;
    items_[size_++] = item;
    return true;
  }

  void cut() noexcept { complete_ = false; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] Item operator[](std::size_t i) const noexcept { return items_[i]; }

 private:
  static constexpr std::size_t kUsual = 128;

  bool grow() noexcept {
    auto* larger = static_cast<Item*>(base::map_pages(room_ * 2 * sizeof(Item)));
    if (larger == nullptr) return false;
    std::memcpy(larger, items_, size_ * sizeof(Item));
    if (items_ != usual_) base::unmap_pages(items_, room_ * sizeof(Item));
    items_ = larger;
    room_ *= 2;
    return true;
  }

  Item usual_[kUsual];
  Item* items_ = usual_;
  std::size_t size_ = 0;
  std::size_t room_ = kUsual;
  bool complete_ = true;
};

}  // namespace whence::stacks
