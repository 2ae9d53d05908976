// edges.cpp: captures with hardly any stack left, and how much they need. See storm.h.
//
// The stack is a mapping of our own, with a page that cannot be touched before it and one behind.
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <initializer_list>

#include "storm/storm.h"

using namespace whence::unwind;

namespace storm {
namespace {

constexpr std::size_t kPainted = 24 * 1024;
constexpr std::size_t kSpare = 1024;  // for what is not always the same
std::size_t needed = 0;

// From here inwards, as far as no function has been.
[[gnu::noinline, gnu::no_sanitize("address")]] void paint(char* low, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    asm volatile("" : : : "memory");
    *static_cast<volatile char*>(low + i) = 0x5A;
  }
}
[[gnu::noinline, gnu::no_sanitize("address")]] std::size_t used(const char* low,
                                                                std::size_t size) noexcept {
  std::size_t i = 0;
  while (i < size && *static_cast<const volatile char*>(low + i) == 0x5A) ++i;
  return size - i;
}

[[gnu::noinline]] std::size_t need_of(bool (*body)(const Registers& at)) {
  constexpr std::size_t kOwn = 256;  // painting has a frame, too
  const Registers at = registers_here();
  char* low = reinterpret_cast<char*>(at.sp) - kOwn - kPainted;
  paint(low, kPainted);
  if (!body(at)) fail("there is no memory");
  return used(low, kPainted) + kOwn;
}

[[nodiscard]] bool follow(const Registers& at) {
  return here.trail.follow(at);
}

[[gnu::noinline]] void capture_with_little(std::size_t left, const char* bottom) {
  const auto* now = static_cast<const char*>(__builtin_frame_address(0));
  const auto room = static_cast<std::size_t>(now - bottom);
  if (room > left) {
    void* taken = alloca(room - left);
    asm volatile("" : : "r"(taken) : "memory");
  }
  const Registers at = registers_here();
  if (!here.trail.follow(at)) fail("there is no memory");
  if (here.trail.end() != End::outermost) fail("a walk at the edge ended early");
  here.trail.release();
}

template <class Body>
void on_small_stack(std::size_t size, Body body) {
  struct Given {
    Body& body;
    char* bottom;
  };
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  char* all = static_cast<char*>(mmap(nullptr, size + 2 * page, PROT_NONE, kFlags, -1, 0));
  if (all == MAP_FAILED || mprotect(all + page, size, PROT_READ | PROT_WRITE) != 0) {
    fail("there is no memory");
  }
  Given given = {body, all + page};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, all + page, size);
  pthread_t thread;
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  const auto run = [](void* passed) -> void* {
    auto* mine = static_cast<Given*>(passed);
    mine->body(mine->bottom);
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, run, &given) != 0) fail("there is no thread");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  munmap(all, size + 2 * page);
}

[[nodiscard]] std::size_t smallest() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (static_cast<std::size_t>(PTHREAD_STACK_MIN) + page - 1) / page * page;
}

}  // namespace

// Before anything else is captured: all rows have to be learned, and functions found by the linker.
void measure() {
  std::size_t first = 0, thread = 0, warm = 0;
  for (std::size_t* need : {&first, &thread}) {
    on_small_stack(256 * 1024, [&](char*) {
      for (int i = 0; i < 2; ++i) *(i == 0 ? need : &warm) = need_of(follow);
      here.trail.release();
    });
  }
  needed = std::max(first, thread);
  std::printf("stack: first %zu, of a new thread %zu, warm %zu bytes\n", first, thread, warm);
}

void capture_at_edge() {
  const std::size_t left = needed + kSpare;
  on_small_stack(std::max(smallest(), 4 * left),
                 [&](const char* bottom) { capture_with_little(left, bottom); });
  counts.edges.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace storm
