// lock.h: the one kind of lock in the native core, and the order in which locks may be taken.
//
// Threads: any, but not in signal handlers. A holder never enters Python, malloc or the loader, so
// it is done soon; waiting is yielding, and then short sleeps, because a thread with real-time
// priority would yield to nobody. A holder cannot be cancelled, and errno stays as it was.
// Allocates: never.
// Fails by: a thread that takes locks out of order dies on an assertion in checked builds.
#pragma once

#include <errno.h>

#include <atomic>
#include <cstdint>

namespace whence::base {

// One round of waiting for another thread: yields, and after many rounds short sleeps.
void back_off(int round) noexcept;

namespace detail {
// Held by this thread, or about to be.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit std::uint32_t locks_held;
}  // namespace detail
// Only a signal handler may find that its thread does.
[[nodiscard]] inline bool holds_locks() noexcept {
  return detail::locks_held != 0;
}

// A thread that holds a lock may only take one of a higher rank.
enum class Rank : std::uint8_t { codes = 1, bytes, modules, stacks, memo, blocks, store };

class Lock {
 public:
  constexpr explicit Lock(Rank rank) noexcept : rank_(rank) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void acquire() noexcept;
  void release() noexcept;
  // In a forked child, where whoever held it does not exist.
  void reset() noexcept { taken_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> taken_ = false;
  int cancel_state_ = 0;  // of the holder, before
  [[maybe_unused]] const Rank rank_;
};

class [[nodiscard]] Holding {
 public:
  explicit Holding(Lock& lock) noexcept : lock_(lock), errno_(errno) { lock_.acquire(); }
  ~Holding() {
    lock_.release();
    errno = errno_;
  }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  Lock& lock_;
  const int errno_;
};

}  // namespace whence::base
