// allocators.h: CPython's three allocator domains, with a sink in front of each.
//
// Threads: install(), remove() and all_reached() under the GIL; hooks on any thread, those of the
// raw domain also without the GIL.
// Allocates: never. Fails by: it cannot. The program's allocation is done whatever the sink does.
//
// A sink is a class with these static functions:
//
//   bool enter(), void leave()    false: this thread is in a hook already, or nothing is wanted;
//                                 then the others are not called
//   bool enter_giving(), void leave_giving()
//        asked after that: true if freeing() and not_freed() are to be called all the same
//   void allocated(domain, void* block, size), moved(domain, void* block, size)
//        afterwards; block is nullptr if there was no memory
//   void freeing(void* block)     before it is given back
//   void not_freed(void* block)   it was to be moved, and is still there
//
// A hook is a function of its own for each domain and keeps nothing in the context, which is what
// the allocator below gets: a thread that reads the table of hooks while another changes it calls
// an old function or a new one, and both understand the context.
//
// Whoever puts hooks in front of ours later (tracemalloc) keeps ours behind his own and may put
// them back after we have gone: they stay valid for ever, and do nothing but pass on. So whether a
// hook is in the chain is found out by an allocation: what is there must not be put there again.
//
// Hooks that are put back come with the context of whatever was below them then. So there are
// several sets of functions, and each is for ever in front of the one allocator it was first put
// in front of; the last set is for one without a context, such as CPython's own. When all are used
// up and none fits, nothing is installed: all_reached() says so.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <utility>

namespace whence::cpython {

// Set while is_reached() asks, so that a hook of the domain which passes on says that it was here.
inline std::atomic<bool> allocators_listen = false;
template <PyMemAllocatorDomain kDomain>
inline std::atomic<bool> allocators_heard = false;

inline constexpr int kAllocatorSets = 6;

template <class Sink, PyMemAllocatorDomain kDomain, int kSet>
class AllocatorHook {
 public:
  // Has this set been in front of nothing yet, or of just that?
  [[nodiscard]] static bool fits(const PyMemAllocatorEx& below) noexcept {
    if (below_.malloc == nullptr) return kSet + 1 < kAllocatorSets || below.ctx == nullptr;
    return below_.ctx == below.ctx && below_.malloc == below.malloc &&
           below_.calloc == below.calloc && below_.realloc == below.realloc &&
           below_.free == below.free;
  }
  [[nodiscard]] static bool is(const PyMemAllocatorEx& top) noexcept {
    return top.malloc == malloc;
  }
  static void put_before(const PyMemAllocatorEx& below) noexcept {
    below_ = below;
    PyMemAllocatorEx ours = {below.ctx, malloc, calloc, realloc, free};
    PyMem_SetAllocator(kDomain, &ours);
  }
  static void take_out() noexcept { PyMem_SetAllocator(kDomain, &below_); }

 private:
  [[nodiscard, gnu::always_inline]] static bool enter() noexcept {
    if (Sink::enter()) [[likely]]
      return true;
    if (allocators_listen.load(std::memory_order_relaxed)) [[unlikely]]
      allocators_heard<kDomain>.store(true, std::memory_order_relaxed);
    return false;
  }

  static void* malloc(void* context, std::size_t size) {
    if (!enter()) return below_.malloc(context, size);
    void* block = below_.malloc(context, size);
    Sink::allocated(kDomain, block, size);
    Sink::leave();
    return block;
  }

  static void* calloc(void* context, std::size_t count, std::size_t size) {
    if (!enter()) return below_.calloc(context, count, size);
    void* block = below_.calloc(context, count, size);
    Sink::allocated(kDomain, block, count * size);  // a product that overflows gave no block
    Sink::leave();
    return block;
  }

  static void* realloc(void* context, void* old, std::size_t size) {
    if (!enter()) return realloc_passed(context, old, size);
    if (old != nullptr) Sink::freeing(old);
    void* block = below_.realloc(context, old, size);
    if (old == nullptr) {
      Sink::allocated(kDomain, block, size);
    } else {
      if (block == nullptr) Sink::not_freed(old);
      Sink::moved(kDomain, block, size);
    }
    Sink::leave();
    return block;
  }

  static void free(void* context, void* block) {
    if (block == nullptr) return below_.free(context, block);
    if (!enter()) return free_passed(context, block);
    Sink::freeing(block);
    below_.free(context, block);
    Sink::leave();
  }

  static void* realloc_passed(void* context, void* old, std::size_t size) {
    if (old == nullptr || !Sink::enter_giving()) return below_.realloc(context, old, size);
    Sink::freeing(old);
    void* block = below_.realloc(context, old, size);
    if (block == nullptr) Sink::not_freed(old);
    Sink::leave_giving();
    return block;
  }

  static void free_passed(void* context, void* block) {
    if (!Sink::enter_giving()) return below_.free(context, block);
    Sink::freeing(block);
    below_.free(context, block);
    Sink::leave_giving();
  }

  static inline PyMemAllocatorEx below_ = {};  // written once
};

// Those of one domain.
template <class Sink, PyMemAllocatorDomain kDomain,
          class Sets = std::make_integer_sequence<int, kAllocatorSets>>
class AllocatorHooks;

template <class Sink, PyMemAllocatorDomain kDomain, int... kSets>
class AllocatorHooks<Sink, kDomain, std::integer_sequence<int, kSets...>> {
  template <int kSet>
  using Hook = AllocatorHook<Sink, kDomain, kSet>;

  [[nodiscard]] static PyMemAllocatorEx top() noexcept {
    PyMemAllocatorEx top;
    PyMem_GetAllocator(kDomain, &top);
    return top;
  }

 public:
  // An allocation that does not come by here finds hooks of somebody else's in our place.
  [[nodiscard]] static bool is_reached() noexcept {
    const bool entered = Sink::enter();  // so that the hook passes on
    const PyMemAllocatorEx there = top();
    allocators_heard<kDomain>.store(false, std::memory_order_relaxed);
    allocators_listen.store(true, std::memory_order_relaxed);
    there.free(there.ctx, there.malloc(there.ctx, 1));
    allocators_listen.store(false, std::memory_order_relaxed);
    if (entered) Sink::leave();
    return allocators_heard<kDomain>.load(std::memory_order_relaxed);
  }

  static void install() noexcept {
    if (is_reached()) return;
    const PyMemAllocatorEx below = top();
    static_cast<void>(
        ((Hook<kSets>::fits(below) && (Hook<kSets>::put_before(below), true)) || ...));
  }

  // Behind somebody else's we stay.
  static void remove() noexcept {
    const PyMemAllocatorEx there = top();
    static_cast<void>(((Hook<kSets>::is(there) && (Hook<kSets>::take_out(), true)) || ...));
  }
};

template <class Sink>
class Allocators {
  using Raw = AllocatorHooks<Sink, PYMEM_DOMAIN_RAW>;
  using Mem = AllocatorHooks<Sink, PYMEM_DOMAIN_MEM>;
  using Obj = AllocatorHooks<Sink, PYMEM_DOMAIN_OBJ>;

 public:
  static void install() noexcept { Raw::install(), Mem::install(), Obj::install(); }
  static void remove() noexcept { Raw::remove(), Mem::remove(), Obj::remove(); }
  // False: somebody has put other hooks in our place.
  [[nodiscard]] static bool all_reached() noexcept {
    return Raw::is_reached() && Mem::is_reached() && Obj::is_reached();
  }
};

}  // namespace whence::cpython
