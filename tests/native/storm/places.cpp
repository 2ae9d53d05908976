// places.cpp: fibers on stacks of their own, signals on others, and one in the other. See storm.h.
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "storm/storm.h"

// It takes a stack near another for more of it, unless it is told.
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(begin, end) 0u
#define VALGRIND_STACK_DEREGISTER(id) static_cast<void>(id)
#endif

namespace storm {
namespace {

constexpr std::size_t kStack = 256 * 1024;

// A stack with nothing before it and nothing behind.
class Stack {
 public:
  Stack() : guard_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* all = mmap(nullptr, kStack + 2 * guard_, PROT_NONE, kFlags, -1, 0);
    if (all == MAP_FAILED) fail("there is no memory");
    begin_ = static_cast<char*>(all) + guard_;
    if (mprotect(begin_, kStack, PROT_READ | PROT_WRITE) != 0) fail("there is no memory");
    id_ = VALGRIND_STACK_REGISTER(begin_, begin_ + kStack);
  }
  ~Stack() {
    VALGRIND_STACK_DEREGISTER(id_);
    munmap(begin_ - guard_, kStack + 2 * guard_);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  [[nodiscard]] char* begin() const noexcept { return begin_; }

 private:
  std::size_t guard_;
  char* begin_;
  unsigned id_;
};

struct Fiber {
  ucontext_t own, caller;
  int depth;
  bool ended;
};
thread_local Fiber* entered;

// A fiber goes on from where it left off, with other frames around.
void run_fiber() {
  Fiber* fiber = entered;
  here.unlisted = 0;
  onward(fiber->depth - 1);
  here.unlisted = 1;
  swapcontext(&fiber->own, &fiber->caller);
  here.unlisted = 0;
  onward(fiber->depth - 2);
  here.unlisted = 1;
  fiber->ended = true;
}

void resume(Fiber& fiber) {
  Fiber* const before = entered;
  entered = &fiber;
  swapcontext(&fiber.caller, &fiber.own);
  entered = before;
}

[[gnu::noinline]] void with_fiber(int depth) {
  counts.fibers.fetch_add(1, std::memory_order_relaxed);
  const Stack stack;
  Fiber fiber = {};
  fiber.depth = depth;
  getcontext(&fiber.own);
  fiber.own.uc_stack.ss_sp = stack.begin();
  fiber.own.uc_stack.ss_size = kStack;
  fiber.own.uc_link = &fiber.caller;
  makecontext(&fiber.own, run_fiber, 0);
  // On a stack of its own there is nothing of what is around; on the way there, a signal may come
  // on either. It ends where glibc has put an address to return to by hand, before which there is
  // no function: nobody can tell that it is the last.
  const int unlisted = here.unlisted, unprovable = here.unprovable;
  while (!fiber.ended) {
    here.unlisted = here.unprovable = 1;
    resume(fiber);
    here.unlisted = unlisted;
    here.unprovable = unprovable;
    capture();
  }
}

thread_local int depth_of_signal;

void handle(int) {
  const int before = errno;
  const Passing handler(here.handlers);
  const int depth = depth_of_signal;
  counts.signals.fetch_add(1, std::memory_order_relaxed);
  onward(depth - 1);
  capture();
  errno = before;
}

void interrupt(int) {
  const int before = errno;
  capture_interrupted();
  errno = before;
}

// Each signal can come while the others are handled.
constexpr int kSignals[] = {SIGUSR1, SIGUSR2, SIGURG, SIGWINCH};

[[gnu::noinline]] void with_signal(int depth) {
  depth_of_signal = depth;
  raise(kSignals[static_cast<std::size_t>(here.handlers)]);
  asm volatile("");
}

}  // namespace

void prepare_signals(bool stacks) {
  struct sigaction action = {};
  action.sa_handler = handle;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    action.sa_flags = stacks && i % 2 == 0 ? SA_ONSTACK : 0;
    sigaction(kSignals[i], &action, nullptr);
  }
  action.sa_handler = interrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
}

namespace {
thread_local Stack* signal_stack;
}

void prepare_thread() {
  signal_stack = new Stack;
  const stack_t stack = {signal_stack->begin(), 0, kStack};
  if (sigaltstack(&stack, nullptr) != 0) fail("there is no stack for signals");
}

// Nothing may come any more that would walk.
void release_thread() {
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, nullptr);
  here.trail.release();
  here.interrupted.release();
  const stack_t none = {nullptr, SS_DISABLE, 0};
  sigaltstack(&none, nullptr);
  delete signal_stack;
}

// A fiber inside a handler would let the kernel believe that the signal stack is free.
void through_places(int depth, bool fibers) {
  const bool is_signal = random(2) == 0 || here.handlers != 0 || !fibers;
  if (!is_signal) return with_fiber(depth);
  if (here.handlers < static_cast<int>(std::size(kSignals)) && entered == nullptr) {
    return with_signal(depth);
  }
  through_compiled(depth);
}

}  // namespace storm
