// c_allocators.cpp: see c_allocators.h.
#include "probes/c_allocators.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdarg>

#include "base/libraries_generation.h"
#include "base/redirect.h"
#include "probes/memory_control.h"

namespace whence::probes {
namespace {

using format::MallocAllocated;
using format::MallocMoved;

std::atomic<bool> wanted = false;

// Calls come through here also when these allocators are not recorded: from a forked child, and by
// pointers that the program was given while they were.
class Telling {
 public:
  Telling() noexcept : entered_(wanted.load(std::memory_order_relaxed) && enter_memory()) {}
  ~Telling() {
    if (entered_) leave_memory();
  }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  const bool entered_;
};

// The same for what gives something back, and perhaps takes something for it.
class Giving {
 public:
  Giving() noexcept
      : both_(wanted.load(std::memory_order_relaxed) && enter_memory()),
        gives_(!both_ && wanted.load(std::memory_order_relaxed) && enter_giving()) {}
  ~Giving() {
    if (both_) leave_memory();
    if (gives_) leave_giving();
  }
  Giving(const Giving&) = delete;
  Giving& operator=(const Giving&) = delete;
  explicit operator bool() const noexcept { return both_ || gives_; }
  [[nodiscard]] bool takes() const noexcept { return both_; }

 private:
  const bool both_, gives_;
};

// errno is the program's: what is told leaves no trace in it.
template <class R>
[[gnu::always_inline]] inline void took(std::uint32_t event, const void* block,
                                        std::size_t size) noexcept {
  const int before = errno;
  block_taken<R>(Domain::malloc, event, block, size, cpython::asker());
  errno = before;
}

[[gnu::always_inline]] inline void gives(const void* block) noexcept {
  const int before = errno;
  block_given(block);
  errno = before;
}

// What is refused as nonsense is not for lack of memory.
void* take(void* block, std::size_t size) noexcept {
  if (block == nullptr && errno == EINVAL) return nullptr;
  took<MallocAllocated>(kTaken, block, size);
  return block;
}

// SIZE_MAX: it will be refused.
[[nodiscard]] std::size_t product(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

void* malloc_told(std::size_t size) {
  const Telling telling;
  void* block = malloc(size);
  return telling ? take(block, size) : block;
}

void* calloc_told(std::size_t count, std::size_t size) {
  const Telling telling;
  void* block = calloc(count, size);
  return telling ? take(block, product(count, size)) : block;
}

void* aligned_alloc_told(std::size_t alignment, std::size_t size) {
  const Telling telling;
  void* block = aligned_alloc(alignment, size);
  return telling ? take(block, size) : block;
}

void* memalign_told(std::size_t alignment, std::size_t size) {
  const Telling telling;
  void* block = memalign(alignment, size);
  return telling ? take(block, size) : block;
}

void* valloc_told(std::size_t size) {
  const Telling telling;
  void* block = valloc(size);
  return telling ? take(block, size) : block;
}

void* pvalloc_told(std::size_t size) {
  const Telling telling;
  void* block = pvalloc(size);
  return telling ? take(block, size) : block;
}

int posix_memalign_told(void** out, std::size_t alignment, std::size_t size) {
  const Telling telling;
  const int error = posix_memalign(out, alignment, size);
  if (telling && error != EINVAL) take(error == 0 ? *out : nullptr, size);
  return error;
}

void free_told(void* block) {
  const Giving telling;
  if (telling && block != nullptr) gives(block);
  free(block);
}

// A size of nothing gives the block back, and then there is no other.
template <class Realloc>
void* move(void* old, std::size_t size, Realloc&& again) {
  const Giving telling;
  if (telling && old != nullptr) gives(old);
  void* block = again();
  if (!telling) return block;
  if (old == nullptr) return telling.takes() ? take(block, size) : block;
  if (block != nullptr || size != 0) {
    if (block == nullptr) block_kept(old);
    if (telling.takes()) took<MallocMoved>(kMoved, block, size);
  }
  return block;
}

void* realloc_told(void* old, std::size_t size) {
  return move(old, size, [&] { return realloc(old, size); });
}

void* reallocarray_told(void* old, std::size_t count, std::size_t size) {
  return move(old, product(count, size), [&] { return reallocarray(old, count, size); });
}

// What was there goes only if it succeeds, and nobody else can get it in between: told afterwards.
template <class Map>
void* map(void* at, std::size_t size, int flags, Map&& call) {
  const Giving telling;
  void* block = call();
  if (!telling) return block;
  if (block != MAP_FAILED && (flags & MAP_FIXED) != 0) range_unmapped(at, size);
  if (!telling.takes()) return block;
  if (block != MAP_FAILED) {
    range_mapped(kTaken, block, size);
  } else if (errno == ENOMEM) {
    range_mapped(kTaken, nullptr, size);
  }
  return block;
}

void* mmap_told(void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
  return map(at, size, flags, [&] { return mmap(at, size, protection, flags, file, offset); });
}

void* mmap64_told(void* at, std::size_t size, int protection, int flags, int file, off64_t offset) {
  return map(at, size, flags, [&] { return mmap64(at, size, protection, flags, file, offset); });
}

int munmap_told(void* at, std::size_t size) {
  const Giving telling;
  if (telling) range_unmapped(at, size);
  return munmap(at, size);
}

// Where it may move, others may get its old place at once, so that is told as given back before; if
// it then stays, it is told again. Else it keeps its place whatever comes of it, but for the end of
// one that shrinks. Nothing is given back of a copy, which is what an old size of nothing asks for,
// and where the old place stays mapped.
void* mremap_told(void* old, std::size_t old_size, std::size_t size, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* at = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  constexpr int kOldStays = 4;  // MREMAP_DONTUNMAP, which not every C library knows
  const Giving telling;
  const bool leaves = old_size != 0 && (flags & kOldStays) == 0;
  const bool before = leaves && ((flags & MREMAP_MAYMOVE) != 0 || size < old_size);
  if (telling && before) range_unmapped(old, old_size);
  void* block = mremap(old, old_size, size, flags, at);
  if (!telling) return block;
  if (block != MAP_FAILED) {
    if (leaves && !before) range_unmapped(old, old_size);
    if (at != nullptr) range_unmapped(at, size);
    if (telling.takes()) range_mapped(kMoved, block, size);
  } else if (before && errno != EFAULT && telling.takes()) {
    range_mapped(kMoved, old, old_size);
  }
  return block;
}

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

// Who asks one library for a function, as ctypes does, is given the one that calls lead through.
const void* whence_ask(void* library, const char* name) noexcept {
  if (!is_on()) return nullptr;
  const int before = errno;
  if (base::libraries_generation() != generation.load(std::memory_order_relaxed)) {
    look_at_libraries();
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
  redirected = without_gil(look_at_libraries);
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
