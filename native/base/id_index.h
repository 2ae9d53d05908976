// id_index.h: from a hash to an id, for tables whose entries are numbered from 1.
//
// Threads: find() needs no lock; one writer at a time calls insert(), under its table's lock.
// Allocates: in insert(), when half full, by mmap.
// Fails by: insert() returns false and nothing has changed.
//
// Open addressing, at most half full. When it fills, an array of twice the size takes over. Readers
// may still be in the old one, so that is never unmapped; all old ones together are smaller than
// the new one. What a reader misses there it finds when it looks again under the lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/pages.h"

namespace whence::base {

class IdIndex {
 public:
  // The id for which same(id) holds among those inserted under this hash, or 0.
  template <class Same>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Same&& same) const noexcept {
    const Array* array = array_.load(std::memory_order_acquire);
    if (array == nullptr) return 0;
    for (std::uint32_t place = array->home(hash);; place = array->next(place)) {
      const std::uint32_t id = array->slots[place].load(std::memory_order_acquire);
      if (id == 0 || same(id)) return id;
    }
  }

  // hash_of(id) gives the hash of an id inserted before.
  template <class HashOf>
  [[nodiscard]] bool insert(std::uint64_t hash, std::uint32_t id, HashOf&& hash_of) noexcept {
    Array* array = array_.load(std::memory_order_relaxed);
    if (array == nullptr || count_ >= array->size / 2) array = grow(array, hash_of);
    if (array == nullptr) return false;
    array->put(hash, id);
    ++count_;
    return true;
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return mapped_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kFirstSize = 1 << 11;
  static constexpr std::uint32_t kLargestSize = 1u << 31;

  struct Array {
    std::uint32_t size;  // a power of two
    std::atomic<std::uint32_t> slots[1];

    [[nodiscard]] std::uint32_t home(std::uint64_t hash) const noexcept {
      return static_cast<std::uint32_t>(hash) & (size - 1);
    }
    [[nodiscard]] std::uint32_t next(std::uint32_t place) const noexcept {
      return (place + 1) & (size - 1);
    }
    void put(std::uint64_t hash, std::uint32_t id) noexcept {
      std::uint32_t place = home(hash);
      while (slots[place].load(std::memory_order_relaxed) != 0) place = next(place);
      slots[place].store(id, std::memory_order_release);
    }
  };

  template <class HashOf>
  [[nodiscard]] Array* grow(Array* array, HashOf&& hash_of) noexcept {
    if (array != nullptr && array->size == kLargestSize) return nullptr;
    const std::uint32_t size = array == nullptr ? kFirstSize : array->size * 2;
    const std::size_t bytes = sizeof(Array) + size * sizeof(array->slots[0]);
    auto* larger = static_cast<Array*>(map_pages(bytes));
    if (larger == nullptr) return nullptr;
    larger->size = size;
    for (std::uint32_t place = 0; array != nullptr && place < array->size; ++place) {
      const std::uint32_t id = array->slots[place].load(std::memory_order_relaxed);
      if (id != 0) larger->put(hash_of(id), id);
    }
    mapped_.fetch_add(bytes, std::memory_order_relaxed);
    array_.store(larger, std::memory_order_release);
    return larger;
  }

  std::atomic<Array*> array_ = nullptr;
  std::uint32_t count_ = 0;  // under the table's lock
  std::atomic<std::size_t> mapped_ = 0;
};

}  // namespace whence::base
