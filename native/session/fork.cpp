// fork.cpp: see fork.h.
#include "session/fork.h"

#include <pthread.h>

#include <array>

#include "base/byte_pool.h"
#include "stacks/resolve.h"
#include "stacks/store.h"
#include "store/store.h"

namespace whence::session {
namespace {

// In the order of their ranks.
std::array<base::Lock*, 5> all_locks() noexcept {
  return {&stacks::store().codes.lock(), &base::names().lock(), &stacks::store().stacks.lock(),
          &stacks::memo_lock(), &store::store().lock()};
}

void before() {
  for (base::Lock* lock : all_locks()) lock->acquire();
}

void release_all() {
  const auto locks = all_locks();
  for (auto lock = locks.rbegin(); lock != locks.rend(); ++lock) (*lock)->release();
}

void in_child() {
  store::store().forget_parent();
  release_all();
}

}  // namespace

void watch_forks() noexcept {
  static const int done = pthread_atfork(before, release_all, in_child);
  static_cast<void>(done);
}

}  // namespace whence::session
