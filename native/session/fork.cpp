// fork.cpp: see fork.h.
#include "session/fork.h"

#include <pthread.h>

#include "base/loader_lock.h"
#include "probes/memory_control.h"
#include "stacks/modules.h"
#include "stacks/resolve.h"
#include "stacks/store.h"
#include "store/store.h"

namespace whence::session {
namespace {

void in_child() {
  base::forget_walks();
  stacks::store().codes.lock().reset();
  stacks::store().stacks.lock().reset();
  stacks::memo_lock().reset();
  stacks::modules().lock().reset();
  store::store().forget_parent();
  probes::leave_memory_to_parent();
}

}  // namespace

void watch_forks() noexcept {
  static const int done = pthread_atfork(base::let_walks_end, nullptr, in_child);
  static_cast<void>(done);
}

}  // namespace whence::session
