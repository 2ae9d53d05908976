// growing_list.h: a list on the C stack that moves to pages of its own when it grows.
//
// Threads: one. Allocates: by mmap, beyond kUsual items.
// Fails by: add() returns false; what was added stays.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/pages.h"

namespace whence::base {

template <class Item, std::size_t kUsual>
class GrowingList {
  static_assert(std::is_trivially_copyable_v<Item>);

 public:
  GrowingList() noexcept = default;
  ~GrowingList() {
    if (items_ != usual_) unmap_pages(items_, room_ * sizeof(Item));
  }
  GrowingList(const GrowingList&) = delete;
  GrowingList& operator=(const GrowingList&) = delete;

  [[nodiscard]] bool add(const Item& item) noexcept {
    if (size_ == room_ && !grow()) return false;
    items_[size_++] = item;
    return true;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const Item& operator[](std::size_t i) const noexcept { return items_[i]; }

 private:
  bool grow() noexcept {
    auto* larger = static_cast<Item*>(map_pages(room_ * 2 * sizeof(Item)));
    if (larger == nullptr) return false;
    std::memcpy(larger, items_, size_ * sizeof(Item));
    if (items_ != usual_) unmap_pages(items_, room_ * sizeof(Item));
    items_ = larger;
    room_ *= 2;
    return true;
  }

  Item usual_[kUsual];
  Item* items_ = usual_;
  std::size_t size_ = 0;
  std::size_t room_ = kUsual;
};

}  // namespace whence::base
