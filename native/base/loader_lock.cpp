// loader_lock.cpp: see loader_lock.h.
#include "base/loader_lock.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/loaded_library.h"

namespace whence::base {
namespace {

std::atomic<pthread_mutex_t*> lock = nullptr;
std::atomic<std::uint32_t> walks = 0;  // that are under way

#if defined(__GLIBC__)

struct Looking {
  int thread;
  std::size_t found = 0;
  pthread_mutex_t* lock = nullptr;
};

[[nodiscard]] bool is_held_once_by(const pthread_mutex_t& mutex, int thread) noexcept {
  const auto& fields = mutex.__data;
  return fields.__owner == thread && fields.__count == 1 && fields.__nusers == 1 &&
         (fields.__lock == 1 || fields.__lock == 2) && fields.__kind == PTHREAD_MUTEX_RECURSIVE;
}

// Of the loader's variables, those that it may change.
int look(dl_phdr_info* info, std::size_t, void* context) noexcept {
  auto& looking = *static_cast<Looking*>(context);
  if (!LoadedLibrary(*info).is_loader()) return 0;
  for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
    constexpr std::uintptr_t kAlign = alignof(pthread_mutex_t);
    for (auto at = (begin + kAlign - 1) & ~(kAlign - 1); at + sizeof(pthread_mutex_t) <= end;
         at += kAlign) {
      auto* mutex = reinterpret_cast<pthread_mutex_t*>(at);
      if (!is_held_once_by(*mutex, looking.thread)) continue;
      ++looking.found;
      looking.lock = mutex;
    }
  }
  return 1;
}

#endif

}  // namespace

void find_loader_lock() noexcept {
#if defined(__GLIBC__)
  if (loader_lock_is_known()) return;
  Looking looking{gettid()};
  const LoaderWalk under_way;
  dl_iterate_phdr(look, &looking);
  // Of one that is held by this thread in there, and by nobody's doing out here.
  if (looking.found != 1 || looking.lock->__data.__owner == looking.thread) return;
  lock.store(looking.lock, std::memory_order_relaxed);
#endif
}

bool loader_lock_is_known() noexcept {
  return lock.load(std::memory_order_relaxed) != nullptr;
}

bool LoaderLock::try_enter() noexcept {
  pthread_mutex_t* mutex = lock.load(std::memory_order_relaxed);
  entered_ = mutex != nullptr && pthread_mutex_trylock(mutex) == 0;
  return entered_ || mutex == nullptr;
}

LoaderLock::~LoaderLock() {
  if (entered_) pthread_mutex_unlock(lock.load(std::memory_order_relaxed));
}

LoaderWalk::LoaderWalk() noexcept {
  walks.fetch_add(1);
}

LoaderWalk::~LoaderWalk() {
  walks.fetch_sub(1);
}

void let_walks_end() noexcept {
  constexpr std::uint64_t kPatience = 1'000'000'000;
  const std::uint64_t deadline = nanoseconds(CLOCK_MONOTONIC) + kPatience;
  while (walks.load() != 0 && nanoseconds(CLOCK_MONOTONIC) < deadline) sched_yield();
}

void forget_walks() noexcept {
  walks.store(0);
}

}  // namespace whence::base
