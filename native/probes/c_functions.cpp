// c_functions.cpp: see c_functions.h.
#include "probes/c_functions.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstdint>

#include "base/clock.h"
#include "probes/memory.h"

namespace whence::probes {

std::atomic<bool> detail::c_functions_wanted = false;

namespace {

using format::MallocAllocated;
using format::MallocMoved;

[[gnu::always_inline]] inline bool wanted() noexcept {
  return detail::c_functions_wanted.load(std::memory_order_relaxed);
}

// What a function tells while this is there counts: it is the outermost allocator.
class Telling {
 public:
  Telling() noexcept : entered_(wanted() && enter_memory()) {}
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
  explicit Giving(bool may_tell = true) noexcept
      : both_(wanted() && may_tell && enter_memory()),
        gives_(!both_ && wanted() && may_tell && enter_giving()) {}
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

}  // namespace

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
  if (telling && error != EINVAL) took<MallocAllocated>(kTaken, error == 0 ? *out : nullptr, size);
  return error;
}

void free_told(void* block) {
  const Giving telling;
  if (telling && block != nullptr) gives(block);
  free(block);
}

// A size of nothing gives the block back, and then there is no other.
template <class Realloc>
static void* move(void* old, std::size_t size, Realloc&& again) {
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

// Mappings may be made and given back by signal handlers, which malloc() may not be called by: also
// by one that has come in the middle of a record, or of something under a lock of ours.
[[nodiscard]] static bool is_outside() noexcept {
  if (!wanted() || !store::is_writing()) [[likely]]
    return true;
  detail::memory_options.was_interrupted.store(true, std::memory_order_relaxed);
  return false;
}

// What was there goes only if the call succeeds, so it is told afterwards; but others may get the
// place at once. So it is told as of a time before the call: what they tell is later.
class BeforeCall {
 public:
  explicit BeforeCall(const Giving& telling) noexcept
      : time_(telling ? time_before_unmapping() : 0) {}
  void range_went(const void* at, std::size_t size) const noexcept {
    range_unmapped(time_, at, size);
  }

 private:
  const std::uint64_t time_;
};

template <class Map>
static void* map(void* at, std::size_t size, int flags, Map&& call) {
  const Giving telling(is_outside());
  const BeforeCall before(telling);
  void* block = call();
  if (!telling) return block;
  if (block != MAP_FAILED && (flags & MAP_FIXED) != 0) before.range_went(at, size);
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
  const Giving telling(is_outside());
  const BeforeCall before(telling);
  const int error = munmap(at, size);
  if (telling && error == 0) before.range_went(at, size);
  return error;
}

// Nothing is given back of a copy, which is what an old size of nothing asks for, and where the old
// place stays mapped.
void* mremap_told(void* old, std::size_t old_size, std::size_t size, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* at = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  constexpr int kOldStays = 4;  // MREMAP_DONTUNMAP, which not every C library knows
  const Giving telling(is_outside());
  const BeforeCall before(telling);
  void* block = mremap(old, old_size, size, flags, at);
  if (!telling || block == MAP_FAILED) return block;
  if (old_size != 0 && (flags & kOldStays) == 0) before.range_went(old, old_size);
  if (at != nullptr) before.range_went(at, size);
  if (telling.takes()) range_mapped(kMoved, block, size);
  return block;
}

}  // namespace whence::probes
