// memory_control.cpp: see memory_control.h.
#include "probes/memory_control.h"

#include "cpython/allocators.h"
#include "probes/blocks_in_use.h"
#include "probes/c_allocators.h"
#include "probes/memory_state.h"
#include "stacks/capture.h"
#include "stacks/unsettled.h"

namespace whence::probes {
namespace {

constexpr std::uint64_t kPythonDomains = 0x07, kAllDomains = 0x1F;
constexpr std::uint64_t kCoarse = 20'000;  // nanoseconds

template <class Raw, class Mem, class Obj>
[[gnu::always_inline]] inline void take(PyMemAllocatorDomain domain, std::uint32_t event,
                                        const void* block, std::size_t size) noexcept {
  const cpython::Asker asker = cpython::asker();
  switch (domain) {
    case PYMEM_DOMAIN_RAW: return block_taken<Raw>(Domain::raw, event, block, size, asker);
    case PYMEM_DOMAIN_MEM: return block_taken<Mem>(Domain::mem, event, block, size, asker);
    case PYMEM_DOMAIN_OBJ: return block_taken<Obj>(Domain::obj, event, block, size, asker);
  }
}

// What hooks of CPython's allocators call.
struct Sink {
  [[gnu::always_inline]] static bool enter() noexcept { return enter_memory(); }
  [[gnu::always_inline]] static void leave() noexcept { leave_memory(); }
  [[gnu::always_inline]] static bool enter_giving() noexcept { return probes::enter_giving(); }
  static void leave_giving() noexcept { probes::leave_giving(); }
  [[gnu::always_inline]] static void allocated(PyMemAllocatorDomain domain, const void* block,
                                               std::size_t size) noexcept {
    take<format::RawAllocated, format::MemAllocated, format::ObjAllocated>(domain, kTaken, block,
                                                                           size);
  }
  [[gnu::always_inline]] static void moved(PyMemAllocatorDomain domain, const void* block,
                                           std::size_t size) noexcept {
    take<format::RawMoved, format::MemMoved, format::ObjMoved>(domain, kMoved, block, size);
  }
  [[gnu::always_inline]] static void freeing(const void* block) noexcept { block_given(block); }
  static void not_freed(const void* block) noexcept { block_kept(block); }
};

using Source = cpython::Allocators<Sink>;

// All guarded by the GIL.
MemoryWanted now;
bool started = false;
const char* missing = nullptr;  // why events are, if so

bool is_on() noexcept {
  return detail::memory_options.recording.load(std::memory_order_relaxed) != 0;
}

const char* turn_on() {
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) return "off";
  MemoryOptions& options = detail::memory_options;
  if (is_on() && !Source::all_reached()) missing = kHookReplaced;
  Source::install();
  options.usual = false;
  options.detail = now.detail;
  options.events = now.events;
  options.usual = now.detail == Detail::alloc && now.events == kAllEvents;
  options.native = now.native;
  options.coarse = base::ticks_in(kCoarse);
  store::write_fact<format::MemoryOn>(now.all ? kAllDomains : kPythonDomains,
                                      static_cast<std::uint64_t>(now.detail));
  options.next_sample = 0;  // with the first event
  options.recording = recording;
  const char* reason = nullptr;
  if (now.all) reason = stacks::prepare_for_unsettled() ? add_c_allocators() : "no_room";
  if (!now.all) remove_c_allocators();
  return reason;
}

void turn_off() {
  if (!is_on()) return;
  if (!Source::all_reached()) missing = kHookReplaced;
  detail::sample_resident(detail::memory_options.recording, base::ticks());
  detail::memory_options.recording = 0;
  store::write_fact<format::MemoryOff>();
  const char* reason = remove_c_allocators();
  if (missing == nullptr) missing = reason;
  Source::remove();
}

}  // namespace

const char* start_memory(const MemoryWanted& wanted) {
  now = wanted;
  if (!started) {
    missing = nullptr;
    blocks_in_use().begin(store::store().generation());
    detail::memory_options.blocks_lost = 0;
    detail::memory_options.was_interrupted = false;
  }
  started = true;
  const char* reason = turn_on();
  started = is_on();
  if (reason == nullptr && stacks::walk_in_use() != stacks::Walk::fast && !now.native) {
    return kNoStacks;
  }
  return reason;
}

void pause_memory() {
  turn_off();
}

const char* resume_memory() {
  return started ? turn_on() : nullptr;
}

bool set_answering(bool answering) noexcept {
  base::Business& business = base::detail::business;
  const bool before = business == base::Business::answer;
  business = answering ? base::Business::answer : base::Business::program;
  return before;
}

bool tell_memory_state() noexcept {
  if (!started || now.detail != Detail::state) return true;
  return write_memory_state(store::store().generation());
}

const char* stop_memory() {
  turn_off();
  if (!tell_memory_state() && missing == nullptr) missing = "state_cut";
  started = false;
  blocks_in_use().clear();
  const bool was_interrupted = detail::memory_options.was_interrupted.exchange(false);
  if (missing != nullptr) return missing;
  if (detail::memory_options.blocks_lost.exchange(0) != 0) return "no_room";
  return was_interrupted ? "signal_handlers" : nullptr;
}

std::optional<std::uint32_t> stack_in_use(std::uint64_t address) noexcept {
  const auto block = started ? blocks_in_use().find(address) : std::nullopt;
  return block.has_value() ? std::optional(block->stack) : std::nullopt;
}

// The recording is the parent's: nothing is written, and no lock is taken, of the store's or of the
// loader's.
void leave_memory_to_parent() noexcept {
  detail::memory_options.recording = 0;
  forget_c_allocators();
  blocks_in_use().reset_locks();
}

void forget_memory() noexcept {
  leave_memory_to_parent();
  Source::remove();
  started = false;
  blocks_in_use().clear();
}

}  // namespace whence::probes
