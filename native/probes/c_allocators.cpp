// c_allocators.cpp: see c_allocators.h.
#include "probes/c_allocators.h"

#include <dlfcn.h>
#include <errno.h>

#include <array>
#include <atomic>

#include "base/libraries_generation.h"
#include "base/loader_lock.h"
#include "base/redirect.h"
#include "probes/c_functions.h"
#include "probes/memory.h"
#include "probes/memory_control.h"

namespace whence::probes {
namespace {

std::atomic<bool>& wanted = detail::c_functions_wanted;

std::atomic<std::uint64_t> generation = 0;  // of the libraries, when all had been looked at
std::atomic<std::uint32_t> refused = 0;     // slots that could not be changed then

}  // namespace

// What dlsym() would say, or nullptr: see below.
extern "C" [[gnu::visibility("hidden"), gnu::used]] const void* whence_ask(
    void* library, const char* name) noexcept;

}  // namespace whence::probes

// What is asked of all libraries dlsym() answers by who calls it, so that it must not be called
// from here: it is gone on to, and returns to where this was called from.
extern "C" [[gnu::visibility("hidden")]] void* whence_dlsym(void* library, const char* name);
#if defined(__x86_64__)
asm(R"(
  .pushsection .text
  .type whence_dlsym, @function
  .hidden whence_dlsym
  .globl whence_dlsym
whence_dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call whence_ask
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  jz 1f
  ret
1:
  jmp dlsym@PLT
  .cfi_endproc
  .size whence_dlsym, . - whence_dlsym
  .popsection
)");
#elif defined(__aarch64__)
asm(R"(
  .pushsection .text
  .type whence_dlsym, %function
  .hidden whence_dlsym
  .globl whence_dlsym
whence_dlsym:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  stp x0, x1, [sp, #16]
  bl whence_ask
  mov x2, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_adjust_cfa_offset -32
  .cfi_restore x29
  .cfi_restore x30
  cbz x2, 1f
  mov x0, x2
  ret
1:
  b dlsym
  .cfi_endproc
  .size whence_dlsym, . - whence_dlsym
  .popsection
)");
#else
void* whence_dlsym(void*, const char*) {
  return nullptr;  // nothing is redirected to it
}
#endif

namespace whence::probes {
namespace {

template <class Function>
[[nodiscard]] base::Redirection redirection(const char* name, Function* through) noexcept {
  return {name, reinterpret_cast<const void*>(through)};
}

[[nodiscard]] auto& redirections() noexcept {
  static std::array all = {
      redirection("malloc", malloc_told),
      redirection("calloc", calloc_told),
      redirection("realloc", realloc_told),
      redirection("reallocarray", reallocarray_told),
      redirection("free", free_told),
      redirection("posix_memalign", posix_memalign_told),
      redirection("aligned_alloc", aligned_alloc_told),
      redirection("memalign", memalign_told),
      redirection("valloc", valloc_told),
      redirection("pvalloc", pvalloc_told),
      redirection("mmap", mmap_told),
      redirection("mmap64", mmap64_told),
      redirection("munmap", munmap_told),
      redirection("mremap", mremap_told),
      redirection("dlsym", whence_dlsym),
  };
  return all;
}

// In a forked child as the parent left it; else only whoever starts and stops comes here, one at a
// time.
bool redirected = false;
base::Settled settled;

// Who holds the loader's lock may be waiting for the GIL, as whoever lists libraries in Python is.
// The interpreter may end the thread when it wants the GIL back (native/README.md, Locks).
template <class Call>
auto without_gil(Call&& call) {
  PyThreadState* state = PyEval_SaveThread();
  const auto result = call();
  PyEval_RestoreThread(state);
  return result;
}

// False: not on this machine.
bool look_at_libraries() noexcept {
  const std::uint64_t now = base::libraries_generation();
  if (!base::find_meanings(redirections())) return false;
  const base::Redirected done = base::redirect(redirections(), wanted, settled);
  refused.store(done.refused, std::memory_order_relaxed);
  generation.store(done.complete ? now : 0, std::memory_order_relaxed);
  return true;
}

// A forked child finds locks of the loader's as they were, held by threads that it does not have.
[[nodiscard]] bool is_on() noexcept {
  return wanted.load(std::memory_order_relaxed) &&
         detail::memory_options.recording.load(std::memory_order_relaxed) != 0 &&
         !store::store().in_wiped_child();
}

}  // namespace

// With the GIL, of whatever interpreter, nobody is waited for: then the next one who asks looks.
static void look_at_libraries_again() noexcept {
  base::LoaderLock lock;
  if (cpython::calling_state_quickly() == nullptr || lock.try_enter()) look_at_libraries();
}

// Who asks one library for a function, as ctypes does, is given the one that calls lead through.
const void* whence_ask(void* library, const char* name) noexcept {
  if (!is_on()) return nullptr;
  const int before = errno;
  if (base::libraries_generation() != generation.load(std::memory_order_relaxed)) {
    look_at_libraries_again();
  }
  errno = before;
  if (library == RTLD_DEFAULT || library == RTLD_NEXT) return nullptr;
  const void* found = dlsym(library, name);
  for (const base::Redirection& one : redirections()) {
    if (found != nullptr && found == one.meaning.load(std::memory_order_relaxed)) {
      return one.through;
    }
  }
  return found;
}

const char* add_c_allocators() {
  wanted = true;
  redirected = without_gil([] {
    base::find_loader_lock();
    return look_at_libraries();
  });
  wanted = redirected;
  return redirected ? nullptr : "unknown_machine";
}

// Slots of libraries that nobody has asked for a function yet never led through us.
const char* remove_c_allocators() {
  const bool were_told = wanted.exchange(false);
  if (!redirected) return nullptr;
  redirected = false;
  const base::Redirected done = without_gil([] {
    static_cast<void>(base::find_meanings(redirections()));
    return base::restore(redirections(), settled);
  });
  const bool all_seen = generation.exchange(0) == base::libraries_generation();
  if (!were_told) return nullptr;
  if (all_seen && done.passed_by > refused) return kHookReplaced;
  return !done.complete || refused != 0 ? "libraries_left" : nullptr;
}

void forget_c_allocators() noexcept {
  wanted = false;
}

}  // namespace whence::probes
