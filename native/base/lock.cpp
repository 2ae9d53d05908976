// lock.cpp: see lock.h. Checked builds (WHENCE_CHECKED) keep the ranks held by each thread.
#include "base/lock.h"

#include <sched.h>

#ifdef WHENCE_CHECKED
#include <cassert>
#endif

namespace whence::base {

#ifdef WHENCE_CHECKED
namespace {
thread_local std::uint32_t held_ranks = 0;  // bit r: this thread holds a lock of rank r
}
#endif

void Lock::acquire() noexcept {
#ifdef WHENCE_CHECKED
  const std::uint32_t mine = 1u << static_cast<unsigned>(rank_);
  assert(held_ranks < mine && "locks taken out of rank order");
  held_ranks |= mine;
#endif
  while (taken_.exchange(true, std::memory_order_acquire)) {
    while (taken_.load(std::memory_order_relaxed)) sched_yield();
  }
}

void Lock::release() noexcept {
#ifdef WHENCE_CHECKED
  held_ranks &= ~(1u << static_cast<unsigned>(rank_));
#endif
  taken_.store(false, std::memory_order_release);
}

}  // namespace whence::base
