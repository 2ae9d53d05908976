// loader_lock.h: may the list of libraries be gone through without waiting for anybody?
//
// Threads: any. find_loader_lock() once, before it matters; not from inside dl_iterate_phdr().
// Allocates: never.
// Fails by: not being known (another C library); then try_enter() says yes, and who goes through
// the list waits if it must.
//
// The loader has a lock on its list of libraries that nobody else has a name for. Who goes through
// the list may hold it for as long as a function of his takes, and that may be waiting for the GIL:
// so it must not be waited for with the GIL. It is an ordinary recursive mutex among the loader's
// own variables. Inside dl_iterate_phdr() this thread holds it, which the mutex says itself: so it
// is found by looking.
#pragma once

namespace whence::base {

void find_loader_lock() noexcept;
// Is it known? Only tests ask.
[[nodiscard]] bool loader_lock_is_known() noexcept;

// While this is there, this thread has the lock, or may have it. A fork waits for that: a child has
// no use for a lock that is held by a thread which it does not have.
class LoaderWalk {
 public:
  LoaderWalk() noexcept;
  ~LoaderWalk();
  LoaderWalk(const LoaderWalk&) = delete;
  LoaderWalk& operator=(const LoaderWalk&) = delete;
};

// Before a fork: until there is none, or a second is over.
void let_walks_end() noexcept;
// In a forked child: threads that had one are not there any more.
void forget_walks() noexcept;

class LoaderLock {
 public:
  LoaderLock() = default;
  ~LoaderLock();
  LoaderLock(const LoaderLock&) = delete;
  LoaderLock& operator=(const LoaderLock&) = delete;

  // False: another thread has it. Until the end of this object nobody else goes through the list.
  [[nodiscard]] bool try_enter() noexcept;

 private:
  LoaderWalk under_way_;  // from before it is tried until it is given back
  bool entered_ = false;
};

}  // namespace whence::base
