// address_map.h: something small for each of many addresses.
//
// Threads: one at a time. Allocates: when it grows, by mmap. Fails by: nullptr from put(), and it
// stays as it was. Nothing is ever taken out but all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/hash.h"
#include "base/pages.h"

namespace whence::base {

template <class Value>
class AddressMap {
  static_assert(std::is_trivially_copyable_v<Value>);

 public:
  [[nodiscard]] Value* find(const void* address) noexcept {
    if (room_ == 0) return nullptr;
    Entry& entry = place_of(address);
    return entry.address == address ? &entry.value : nullptr;
  }

  // The value for this address, made zero if it is new.
  [[nodiscard]] Value* put(const void* address) noexcept {
    if (2 * size_ >= room_ && !grow()) return nullptr;
    Entry& entry = place_of(address);
    if (entry.address == nullptr) {
      entry.address = address;
      ++size_;
    }
    return &entry.value;
  }

  void clear() noexcept {
    if (entries_ != nullptr) unmap_pages(entries_, room_ * sizeof(Entry));
    entries_ = nullptr;
    size_ = room_ = 0;
  }

 private:
  struct Entry {
    const void* address;
    Value value;
  };

  [[nodiscard]] Entry& place_of(const void* address) noexcept {
    std::size_t at = mix(reinterpret_cast<std::uintptr_t>(address), 0) & (room_ - 1);
    while (entries_[at].address != nullptr && entries_[at].address != address) {
      at = (at + 1) & (room_ - 1);
    }
    return entries_[at];
  }

  [[nodiscard]] bool grow() noexcept {
    const std::size_t room = room_ == 0 ? 64 : 2 * room_;
    auto* larger = static_cast<Entry*>(map_pages(room * sizeof(Entry)));
    if (larger == nullptr) return false;
    Entry* before = entries_;
    const std::size_t room_before = room_;
    entries_ = larger;
    room_ = room;
    for (std::size_t i = 0; i < room_before; ++i) {
      if (before[i].address != nullptr) place_of(before[i].address) = before[i];
    }
    if (before != nullptr) unmap_pages(before, room_before * sizeof(Entry));
    return true;
  }

  Entry* entries_ = nullptr;
  std::size_t room_ = 0;  // a power of two, or 0
  std::size_t size_ = 0;
};

}  // namespace whence::base
