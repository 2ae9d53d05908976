// not_cancelled.h: a thread that is asked to end (pthread_cancel) does not while this lives.
//
// Threads: each its own. Allocates: never. Fails by: it cannot.
//
// It would end in the next call that opens, reads or closes a file. Programs do not expect that of
// calls in which they have none, as malloc(), and ours let no such unwinding through: it would be
// the end of the process.
#pragma once

#include <pthread.h>

namespace whence::base {

class NotCancelled {
 public:
  NotCancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = 0;
};

}  // namespace whence::base
