// cursors.cpp: see cursors.h.
#include "store/cursors.h"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/system.h"

namespace whence::store {
namespace {

constexpr std::uint64_t kPatience = 1'000'000'000;  // ns

bool membarrier(int command) noexcept {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

bool Cursors::prepare() noexcept {
  if (alive_ == nullptr) {
    alive_ = static_cast<std::atomic<std::uint64_t>*>(map_wiped(sizeof(std::uint64_t)));
  }
  if (alive_ == nullptr) return false;
  alive_.load()->store(1);
  expedited_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return true;
}

// Kernels without MADV_WIPEONFORK (before 4.14) leave the handler of fork() to do it.
void* Cursors::map_wiped(std::size_t bytes) noexcept {
  void* pages = base::map_pages(bytes);
  if (pages != nullptr) base::system.madvise(pages, bytes, MADV_WIPEONFORK);
  return pages;
}

bool Cursors::same_process() const noexcept {
  const std::atomic<std::uint64_t>* alive = alive_.load(std::memory_order_relaxed);
  return alive != nullptr && alive->load(std::memory_order_relaxed) == 1;
}

void Cursors::forget_all() noexcept {
  free_ = nullptr;
  for (std::size_t block = 0; block < blocks_; ++block) {
    std::memset(static_cast<void*>(block_[block]), 0, kBlockBytes);
    add_free(block_[block]);
  }
  if (alive_ != nullptr) alive_.load()->store(2);  // neither
}

void Cursors::add_free(Cursor* block) noexcept {
  for (std::size_t i = kPerBlock; i-- > 0;) {
    block[i].next_free = free_;
    free_ = &block[i];
  }
}

Cursor* Cursors::take(std::uint32_t generation) noexcept {
  if (free_ == nullptr && blocks_ < kMostBlocks) {
    auto* block = static_cast<Cursor*>(map_wiped(kBlockBytes));
    if (block == nullptr) return nullptr;
    block_[blocks_++] = block;
    add_free(block);
  }
  Cursor* cursor = free_;
  if (cursor == nullptr) return nullptr;
  free_ = cursor->next_free;
  cursor->next_free = nullptr;
  cursor->generation = generation;
  return cursor;
}

void Cursors::give_back(Cursor& cursor) noexcept {
  std::memset(static_cast<void*>(&cursor), 0, sizeof cursor);
  cursor.next_free = free_;
  free_ = &cursor;
}

bool Cursors::close(Cursor& cursor) const noexcept {
  cursor.limit.store(nullptr, std::memory_order_relaxed);
  barrier();
  return wait_until_idle(cursor, end_of_patience());
}

void Cursors::close_all(std::uint32_t generation) noexcept {
  for_each(generation,
           [](Cursor& cursor) { cursor.limit.store(nullptr, std::memory_order_relaxed); });
  barrier();
}

// The last resort is time: a store stays in a processor's buffer for microseconds at most.
void Cursors::barrier() const noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (expedited_ && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (membarrier(MEMBARRIER_CMD_GLOBAL)) return;
  const timespec millisecond = {0, 1'000'000};
  nanosleep(&millisecond, nullptr);
}

std::uint64_t end_of_patience() noexcept {
  return base::nanoseconds(CLOCK_MONOTONIC) + kPatience;
}

bool wait_until_idle(const Cursor& cursor, std::uint64_t deadline) noexcept {
  for (int round = 0; cursor.busy.load(std::memory_order_acquire) != 0; ++round) {
    if (base::nanoseconds(CLOCK_MONOTONIC) > deadline) return false;
    base::back_off(round);
  }
  return true;
}

}  // namespace whence::store
