// test_loader_lock.cpp: the loader's lock on its list of libraries is found, and never waited for.
#include <link.h>

#include <atomic>
#include <thread>

#include "base/loader_lock.h"
#include "check.h"

using namespace whence::base;

namespace {

std::atomic<bool> inside = false, done = false;

int wait(dl_phdr_info*, std::size_t, void*) {
  inside = true;
  while (!done) std::this_thread::yield();
  return 1;
}

int enter(dl_phdr_info*, std::size_t, void* entered) {
  LoaderLock lock;
  *static_cast<bool*>(entered) = lock.try_enter();
  return 1;
}

}  // namespace

TEST(the_loaders_lock_is_found_and_only_tried) {
  find_loader_lock();
  CHECK(loader_lock_is_known());
  {
    LoaderLock lock;
    CHECK(lock.try_enter());
  }
  std::thread lister([] { dl_iterate_phdr(wait, nullptr); });
  while (!inside) std::this_thread::yield();
  {
    LoaderLock lock;
    CHECK(!lock.try_enter());
  }
  done = true;
  lister.join();
  LoaderLock lock;
  CHECK(lock.try_enter());
  bool entered = false;
  dl_iterate_phdr(enter, &entered);  // its own thread may go on
  CHECK(entered);
}
