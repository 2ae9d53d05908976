// byte_pool.h: byte strings kept once, for ever, under a 32-bit number.
//
// Threads: any. intern() takes the pool's lock (rank `bytes`); find() and get() take none.
// Allocates: by mmap only.
// Fails by: kNone from intern().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/id_index.h"
#include "base/lock.h"
#include "base/segments.h"
#include "base/text.h"

namespace whence::base {

class BytePool {
 public:
  using Ref = std::uint32_t;
  static constexpr Ref kNone = 0xFFFFFFFF;

  [[nodiscard]] Ref intern(std::span<const std::uint8_t> bytes) noexcept;
  [[nodiscard]] Ref intern(UnicodeView text) noexcept;  // kept as UTF-8

  // What intern() gave, or kNone if the bytes are not there, or are just being added.
  [[nodiscard]] Ref find(std::span<const std::uint8_t> bytes) const noexcept;

  [[nodiscard]] std::string_view get(Ref ref) const noexcept {
    const Item* item = items_.at(ref);
    return {reinterpret_cast<const char*>(item->data), item->size};
  }

  [[nodiscard]] Lock& lock() noexcept { return lock_; }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return mapped_.load(std::memory_order_relaxed) + items_.bytes() + index_.bytes();
  }

 private:
  struct Item {
    const std::uint8_t* data;
    std::size_t size;
    std::uint64_t hash;
  };

  // Strings are written to the end of the current block first and looked up there; a new one stays.
  [[nodiscard]] std::uint8_t* reserve(std::size_t size) noexcept;
  [[nodiscard]] Ref keep(std::uint8_t* data, std::size_t size) noexcept;
  // The item's ref + 1, or 0.
  [[nodiscard]] std::uint32_t look_up(const std::uint8_t* data, std::size_t size,
                                      std::uint64_t hash) const noexcept;

  Lock lock_{Rank::bytes};
  Segments<Item, 10> items_;       // item `ref`; written under lock_, read without
  IdIndex index_;                  // holds ref + 1
  std::uint32_t count_ = 0;        // this and the rest: under lock_
  std::uint8_t* block_ = nullptr;  // where the next string goes
  std::size_t block_left_ = 0;
  std::atomic<std::size_t> mapped_ = 0;
};

// The names of the process: code, spans, files, threads. One pool, so that a name has one number
// whoever uses it. Zero bytes until it is used, and never destroyed.
namespace detail {
extern BytePool the_names;
}
[[nodiscard]] inline BytePool& names() noexcept {
  return detail::the_names;
}

}  // namespace whence::base
