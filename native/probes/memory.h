// memory.h: blocks of memory, as they are taken and given back. The hot path of memory recording.
//
// Threads: any, with the GIL or without; inside an allocator, under whatever lock that is called.
// Allocates: never here; the slow path maps pages, and at first sight of code uses PyMem, whose
// hooks then pass on.
// Fails by: counting the event as dropped. The program's allocation is not touched.
//
// Budget of an event: the clock and about 40 instructions, and for a block that is taken the stack
// (stacks/prefix_cache.h).
//
// Times. What a thread tells next is a few dozen nanoseconds later in most cases, and these
// numbers, which nobody can foresee, would be the most of a packed recording. So for 20
// microseconds the time before stands for the next one, unless another thread has had an event in
// between: then order between threads would be lost. `last_teller` is who had the last one; threads
// without the GIL tell every time exactly and leave their mark there.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstdint>

#include "base/ours.h"
#include "cpython/critical.h"
#include "cpython/state_slot.h"
#include "format/records/memory.h"
#include "probes/write_stack.h"
#include "stacks/prefix_cache.h"
#include "store/write.h"

namespace whence::probes {

using format::Domain;

// What is recorded of it: what is in use at the end; events, with stacks of what is taken; also of
// what is given back.
enum class Detail : std::uint8_t { state = 1, alloc = 2, full = 3 };

// Kinds of events, each a bit: those that are left out are neither written nor counted.
enum MemoryEvent : std::uint32_t {
  kTaken = 1,
  kMoved = 2,
  kGiven = 4,
  kOutOfMemory = 8,
  kSegments = 16,  // of pools
};
inline constexpr std::uint32_t kAllEvents = 31;

struct MemoryOptions {
  std::atomic<std::uint32_t> recording = 0;  // the store's generation; 0: nothing is recorded
  // All events, with stacks of what is taken: then the next two need not be asked.
  std::atomic<bool> usual = false;
  std::atomic<std::uint32_t> events = 0;  // bits of MemoryEvent
  std::atomic<Detail> detail = Detail::alloc;
  std::atomic<bool> native = false;       // stacks with native frames
  std::atomic<std::uint64_t> coarse = 0;  // ticks in which a time is not told anew
  std::atomic<const void*> last_teller = nullptr;
  std::atomic<std::uint64_t> blocks_lost = 0;  // there was no room to keep them
  // Mappings of signal handlers that came in the middle of what is done here: they are not told.
  std::atomic<bool> was_interrupted = false;
  std::atomic<std::uint64_t> next_sample = 0;  // ticks: when to look what the system holds for us
};

namespace detail {
extern MemoryOptions memory_options;

// The stack of this thread, written into the recording; kEmpty where frames cannot be read. `frame`
// is the native frame of the function that asks.
[[nodiscard]] stacks::StackId memory_stack(std::uint32_t recording, cpython::Asker asker,
                                           const void* frame) noexcept;
// False: it is to be told as usual.
[[nodiscard, gnu::cold]] bool taken_otherwise(std::uint32_t recording, Domain domain,
                                              std::uint32_t event, std::uint64_t address,
                                              std::uint64_t size, cpython::Asker asker,
                                              const void* frame) noexcept;
[[nodiscard, gnu::cold]] bool given_otherwise(std::uint32_t recording, std::uint64_t address,
                                              const void* frame) noexcept;
[[nodiscard, gnu::always_inline]] inline bool is_usual() noexcept {
  return memory_options.usual.load(std::memory_order_relaxed);
}

[[nodiscard, gnu::always_inline]] inline Detail detail_now() noexcept {
  return memory_options.detail.load(std::memory_order_relaxed);
}

[[gnu::cold, gnu::noinline]] void sample_resident(std::uint32_t recording,
                                                  std::uint64_t now) noexcept;
[[gnu::cold, gnu::noinline]] void no_memory(std::uint32_t recording, Domain domain,
                                            std::size_t size, cpython::Asker asker,
                                            const void* frame) noexcept;
}  // namespace detail

// From here to leave_memory() allocators that call others, and what is done here, are no business
// of the program's: only the outermost allocator counts. False: that is so already, or nothing is
// recorded.
[[nodiscard, gnu::always_inline]] inline bool enter_memory() noexcept {
  base::Business& business = base::detail::business;
  if (business != base::Business::program ||
      detail::memory_options.recording.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  business = base::Business::ours;
  return true;
}
[[gnu::always_inline]] inline void leave_memory() noexcept {
  base::detail::business = base::Business::program;
}

// The same of a thread that answers a question, of which only what it gives back counts; to be
// asked if the other was false.
[[nodiscard, gnu::always_inline]] inline bool enter_giving() noexcept {
  base::Business& business = base::detail::business;
  if (business != base::Business::answer ||
      detail::memory_options.recording.load(std::memory_order_relaxed) == 0) [[likely]] {
    return false;
  }
  business = base::Business::ours;
  return true;
}
inline void leave_giving() noexcept {
  base::detail::business = base::Business::answer;
}

namespace detail {

[[nodiscard, gnu::always_inline]] inline bool wanted(std::uint32_t event) noexcept {
  return (memory_options.events.load(std::memory_order_relaxed) & event) != 0;
}

// Writes a record with a time that is as exact as order needs it to be.
template <class R, class... Values>
[[gnu::always_inline]] inline void tell_block(std::uint32_t recording, bool attached,
                                              Values... values) noexcept {
  const bool with_gil = attached && cpython::kOneAtATime;
  const auto encode = [&](store::Cursor& cursor, std::uint64_t now) {
    auto& last = memory_options.last_teller;
    const void* teller = with_gil ? &cursor : nullptr;
    if (last.load(std::memory_order_relaxed) != teller) {
      last.store(teller, std::memory_order_relaxed);
    } else if (with_gil &&
               now - cursor.deltas.time < memory_options.coarse.load(std::memory_order_relaxed)) {
      now = cursor.deltas.time;
    }
    return R::encode(cursor.next(), cursor.deltas, now, values...);
  };
  // Or a block is taken, under a lock of the program's, before it was given back.
  if (!with_gil) base::order_clock();
  const std::uint64_t now = store::write_with<R>(recording, encode);
  if (now >= memory_options.next_sample.load(std::memory_order_relaxed)) [[unlikely]]
    sample_resident(recording, now);
}

}  // namespace detail

// An exact time is told of what the system gives and takes: the GIL orders none of that.
template <class R, bool kExact = false>
[[gnu::always_inline]] inline void block_taken(Domain domain, std::uint32_t event,
                                               const void* block, std::size_t size,
                                               cpython::Asker asker) noexcept {
  const std::uint32_t recording = detail::memory_options.recording.load(std::memory_order_relaxed);
  if (block == nullptr) [[unlikely]]
    return detail::no_memory(recording, domain, size, asker, __builtin_frame_address(0));
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const void* frame = __builtin_frame_address(0);
  if (!detail::is_usual()) [[unlikely]] {
    if (detail::taken_otherwise(recording, domain, event, address, size, asker, frame)) return;
  }
  const stacks::StackId stack = detail::memory_stack(recording, asker, frame);
  const bool ordered = asker.attached && !kExact;
  detail::tell_block<R>(recording, ordered, address, size, std::uint64_t{stack});
}

[[gnu::always_inline]] inline void block_given(const void* block) noexcept {
  const std::uint32_t recording = detail::memory_options.recording.load(std::memory_order_relaxed);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  if (!detail::is_usual()) [[unlikely]] {
    if (detail::given_otherwise(recording, address, __builtin_frame_address(0))) return;
  }
  const bool attached = cpython::attached_state_quickly() != nullptr;
  detail::tell_block<format::Freed>(recording, attached, address);
}

// It was told as given back, and is not.
void block_kept(const void* block) noexcept;

// Addresses mapped, by an event of kTaken or kMoved; nullptr: there was no memory. And no longer
// mapped since that time, in ticks, whatever there was: all of a mapping, a part of one, several.
// time_before_unmapping() gives such a time, and room for what is then told of it: a chunk that was
// begun in between would be later.
[[nodiscard]] std::uint64_t time_before_unmapping() noexcept;
void range_mapped(std::uint32_t event, const void* at, std::size_t size) noexcept;
void range_unmapped(std::uint64_t since, const void* at, std::size_t size) noexcept;

}  // namespace whence::probes
