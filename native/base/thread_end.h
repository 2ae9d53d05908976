// thread_end.h: being told when a thread ends.
//
// Threads: watch() any, for itself. Allocates: the C library may, for a thread's first watch.
// Fails by: watch() returns false.
//
// Not a destructor of a thread-local variable: to have one registered takes a lock of the loader's,
// and whoever holds that may be waiting for the GIL.
#pragma once

#include <pthread.h>

namespace whence::base {

class ThreadEnd {
 public:
  explicit ThreadEnd(void (*call)(void*)) noexcept : made_(pthread_key_create(&key_, call) == 0) {}
  [[nodiscard]] bool watch(void* value) const noexcept {
    return made_ && pthread_setspecific(key_, value) == 0;
  }

 private:
  pthread_key_t key_ = 0;
  bool made_;
};

}  // namespace whence::base
