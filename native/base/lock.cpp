// lock.cpp: see lock.h. Checked builds (WHENCE_CHECKED) keep the ranks held by each thread.
#include "base/lock.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#ifdef WHENCE_CHECKED
#include <cassert>
#endif

namespace whence::base {

constinit thread_local std::uint32_t detail::locks_held = 0;

#ifdef WHENCE_CHECKED
namespace {
thread_local std::uint32_t held_ranks = 0;  // bit r: this thread holds a lock of rank r
}
#endif

void back_off(int round) noexcept {
  constexpr int kYields = 100;
  if (round < kYields) {
    sched_yield();
  } else {
    const timespec moment = {0, 50'000};
    nanosleep(&moment, nullptr);
  }
}

void Lock::acquire() noexcept {
#ifdef WHENCE_CHECKED
  const std::uint32_t mine = 1u << static_cast<unsigned>(rank_);
  assert(held_ranks < mine && "locks taken out of rank order");
  held_ranks |= mine;
#endif
  ++detail::locks_held;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  int cancel_state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  for (int round = 0; taken_.exchange(true, std::memory_order_acquire);) {
    while (taken_.load(std::memory_order_relaxed)) back_off(round++);
  }
  cancel_state_ = cancel_state;
}

void Lock::release() noexcept {
#ifdef WHENCE_CHECKED
  held_ranks &= ~(1u << static_cast<unsigned>(rank_));
#endif
  const int cancel_state = cancel_state_;
  taken_.store(false, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  --detail::locks_held;
  pthread_setcancelstate(cancel_state, nullptr);
}

}  // namespace whence::base
