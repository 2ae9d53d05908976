// segments.h: an array that grows without moving its elements.
//
// Threads: any. Readers need no lock for an index that they were given.
// Allocates: in ensure() only, by mmap.
// Fails by: ensure() returns nullptr and the array stays as it was.
//
//   index    0 .. 2^F-1   | 2^F .. 2^(F+1)-1 | 2^(F+1) .. 2^(F+2)-1 | ...
//   segment       0       |        1         |          2           | ...   each is one mapping
//
// Doubling keeps the pointer table small (at most 33 - F entries) and a look-up free of loops.
// Elements start as zero bytes and are never destroyed.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/pages.h"

namespace whence::base {

template <class T, unsigned kFirstBits>
class Segments {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  [[nodiscard]] T* at(std::uint32_t index) const noexcept {
    const Place place = locate(index);
    return segments_[place.segment].load(std::memory_order_acquire) + place.offset;
  }

  // The element, its segment mapped first if it is not there yet.
  [[nodiscard]] T* ensure(std::uint32_t index) noexcept {
    const Place place = locate(index);
    T* segment = segments_[place.segment].load(std::memory_order_acquire);
    if (segment == nullptr) {
      const std::size_t bytes = place.size * sizeof(T);
      segment = static_cast<T*>(map_pages(bytes));
      if (segment == nullptr) return nullptr;
      T* there = nullptr;
      if (segments_[place.segment].compare_exchange_strong(there, segment,
                                                           std::memory_order_acq_rel)) {
        mapped_.fetch_add(bytes, std::memory_order_relaxed);
      } else {
        unmap_pages(segment, bytes);
        segment = there;
      }
    }
    return segment + place.offset;
  }

  [[nodiscard]] bool has(std::uint32_t index) const noexcept {
    return segments_[locate(index).segment].load(std::memory_order_acquire) != nullptr;
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return mapped_.load(std::memory_order_relaxed);
  }

 private:
  struct Place {
    unsigned segment;
    std::size_t offset;
    std::size_t size;
  };

  static constexpr Place locate(std::uint32_t index) noexcept {
    const auto segment = static_cast<unsigned>(std::bit_width(index >> kFirstBits));
    if (segment == 0) return {0, index, std::size_t{1} << kFirstBits};
    const std::size_t first = std::size_t{1} << (kFirstBits + segment - 1);
    return {segment, index - first, first};
  }

  std::atomic<T*> segments_[33 - kFirstBits] = {};
  std::atomic<std::size_t> mapped_ = 0;
};

}  // namespace whence::base
