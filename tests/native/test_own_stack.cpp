// test_own_stack.cpp: a thread knows its own stack, as the C library tells it, and without asking.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/own_stack.h"
#include "check.h"

using whence::base::own_stack;
using whence::base::OwnStack;

namespace {

thread_local int asked = 0;

}  // namespace

// In the place of the C library's.
extern "C" int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
  ++asked;
  static const auto real =
      reinterpret_cast<decltype(&pthread_getattr_np)>(dlsym(RTLD_NEXT, "pthread_getattr_np"));
  return real(thread, attributes);
}

namespace {

[[nodiscard]] OwnStack told() {
  pthread_attr_t attributes;
  CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
  void* begin = nullptr;
  std::size_t size = 0;
  CHECK(pthread_attr_getstack(&attributes, &begin, &size) == 0);
  pthread_attr_destroy(&attributes);
  return {static_cast<char*>(begin), static_cast<char*>(begin) + size};
}

[[nodiscard]] bool is_as_told() {
  const OwnStack found = own_stack(), known = told();
  return found.begin == known.begin && found.end == known.end;
}

void on_thread(const pthread_attr_t& attributes, std::function<void()> body) {
  pthread_t thread;
  const auto run = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  CHECK(pthread_create(&thread, &attributes, run, &body) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
}

void check_unasked() {
  asked = 0;
  const OwnStack found = own_stack();
  const auto* here = static_cast<const char*>(__builtin_frame_address(0));
  CHECK(asked == 0);
  CHECK(found.begin <= here && here < found.end);
  CHECK(is_as_told());
}

constexpr std::size_t kPage = 4096;

}  // namespace

TEST(the_first_thread_is_told_its_stack) {
  CHECK(is_as_told());
}

TEST(others_know_their_stack_whatever_its_size) {
  for (const std::size_t size : {32 * kPage, 37 * kPage + 320, 256 * kPage, 16384 * kPage}) {
    for (const std::size_t guard : {std::size_t{0}, kPage, 8 * kPage}) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      CHECK(pthread_attr_setstacksize(&attributes, size) == 0);
      CHECK(pthread_attr_setguardsize(&attributes, guard) == 0);
      on_thread(attributes, check_unasked);
      pthread_attr_destroy(&attributes);
    }
  }
}

#if !defined(__SANITIZE_THREAD__)  // it takes what glibc keeps there for something of its own
TEST(a_stack_that_was_given_may_begin_anywhere) {
  constexpr std::size_t kSize = 64 * kPage;
  void* pages = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  for (const std::size_t off : {std::size_t{0}, std::size_t{64}, kPage + 1232}) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, static_cast<char*>(pages) + off, kSize - off) == 0);
    on_thread(attributes, [&] {
      CHECK(is_as_told());
      if (off % kPage == 0) check_unasked();
    });
    pthread_attr_destroy(&attributes);
  }
  munmap(pages, kSize);
}
#endif

// glibc keeps what a program has for a thread in the same descriptor: a number, and a pointer.
TEST(data_of_a_thread_is_no_stack) {
  static thread_local char near[64];
  pthread_key_t keys[24];
  for (pthread_key_t& key : keys) CHECK(pthread_key_create(&key, nullptr) == 0);
  const auto check_with = [&](const void* value) {
    for (const pthread_key_t key : keys) CHECK(pthread_setspecific(key, value) == 0);
    CHECK(is_as_told());
    for (const pthread_key_t key : keys) pthread_setspecific(key, nullptr);
  };
  const auto check_all = [&] {
    const char* descriptor = reinterpret_cast<const char*>(pthread_self());
    for (const std::ptrdiff_t off : {-4096, -16, 16, 1232, 4096, 65536, 1 << 19}) {
      check_with(descriptor + off);
    }
    for (const std::uintptr_t number : {4096ul, 16384ul, 1ul << 20, 1ul << 30}) {
      check_with(reinterpret_cast<const void*>(number));
    }
    check_with(near);
    check_with(&keys);
  };
  check_all();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  on_thread(attributes, check_all);
  pthread_attr_destroy(&attributes);
  for (const pthread_key_t key : keys) pthread_key_delete(key);
}

TEST(a_thread_on_another_stack_knows_its_own) {
  static OwnStack on_signal_stack, before;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  on_thread(attributes, [] {
    static char place[64 * 1024];
    const stack_t stack = {place, 0, sizeof place};
    CHECK(sigaltstack(&stack, nullptr) == 0);
    struct sigaction action = {}, old = {};
    action.sa_handler = [](int) { on_signal_stack = own_stack(); };
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, &old);
    before = own_stack();
    asked = 0;
    raise(SIGUSR1);
    CHECK(asked == 0);
    sigaction(SIGUSR1, &old, nullptr);
    const stack_t none = {nullptr, SS_DISABLE, 0};
    sigaltstack(&none, nullptr);
  });
  pthread_attr_destroy(&attributes);
  CHECK(before.end != nullptr);
  CHECK(on_signal_stack.begin == before.begin && on_signal_stack.end == before.end);
}
