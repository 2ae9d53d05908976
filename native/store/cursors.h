// cursors.h: the cursors of all threads.
//
// Threads: take(), give_back(), close_all() and for_each() under the store's lock.
// Allocates: by mmap, in blocks that stay.
// Fails by: nullptr from take().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "store/cursor.h"

namespace whence::store {

class Cursors {
 public:
  // Once, before the first recording: asks the kernel for the barrier that close() needs.
  // False for lack of memory.
  [[nodiscard]] bool prepare() noexcept;

  [[nodiscard]] Cursor* take(std::uint32_t generation) noexcept;
  void give_back(Cursor& cursor) noexcept;

  // After these no thread writes through the cursor. False if its thread did not come out of a
  // record within a second (stopped by a debugger, say): then its chunk must stay mapped.
  [[nodiscard]] bool close(Cursor& cursor) const noexcept;
  void close_all(std::uint32_t generation) noexcept;

  template <class Function>
  void for_each(std::uint32_t generation, Function&& function) noexcept {
    for (std::size_t block = 0; block < blocks_; ++block) {
      for (std::size_t i = 0; i < kPerBlock; ++i) {
        Cursor& cursor = block_[block][i];
        if (cursor.generation == generation) function(cursor);
      }
    }
  }

  // Is this the process that called prepare()?
  [[nodiscard]] bool same_process() const noexcept;
  // Or a child of it in which forget_all() has not been called?
  [[nodiscard]] bool in_wiped_child() const noexcept {
    const std::atomic<std::uint64_t>* alive = alive_.load(std::memory_order_relaxed);
    return alive != nullptr && alive->load(std::memory_order_relaxed) == 0;
  }
  // In a forked child: all cursors are free again.
  void forget_all() noexcept;

 private:
  static constexpr std::size_t kBlockBytes = 64 * 1024;
  static constexpr std::size_t kPerBlock = kBlockBytes / sizeof(Cursor);
  static constexpr std::size_t kMostBlocks = 512;  // 174,000 threads at once

  void barrier() const noexcept;
  void add_free(Cursor* block) noexcept;
  [[nodiscard]] static void* map_wiped(std::size_t bytes) noexcept;

  Cursor* block_[kMostBlocks] = {};
  std::size_t blocks_ = 0;
  Cursor* free_ = nullptr;
  std::atomic<std::atomic<std::uint64_t>*> alive_ = nullptr;  // 1 in this process, 0 in children
  bool expedited_ = false;
};

// A second from now, in nanoseconds of the monotonic clock.
[[nodiscard]] std::uint64_t end_of_patience() noexcept;
// False if the thread is still busy then.
[[nodiscard]] bool wait_until_idle(const Cursor& cursor, std::uint64_t deadline) noexcept;

}  // namespace whence::store
