// memory.cpp: see memory.h.
#include "probes/memory.h"

#include <errno.h>
#include <unistd.h>

#include "base/resident.h"
#include "probes/blocks_in_use.h"
#include "stacks/capture.h"
#include "stacks/unsettled.h"

namespace whence::probes {

namespace {

// What this thread has given back last, where no events are told: it may turn out that it has not.
[[gnu::tls_model("initial-exec")]] thread_local constinit BlockInUse last_given;

}  // namespace

void block_kept(const void* block) noexcept {
  if (!detail::wanted(kGiven)) return;
  const std::uint32_t recording = detail::memory_options.recording.load(std::memory_order_relaxed);
  if (detail::detail_now() == Detail::state) {
    if (last_given.address != reinterpret_cast<std::uintptr_t>(block)) return;
    if (!blocks_in_use().put(recording, last_given)) ++detail::memory_options.blocks_lost;
    return;
  }
  const int before = errno;
  store::write<format::NotFreed>(recording, reinterpret_cast<std::uintptr_t>(block));
  errno = before;
}

// Mappings may be made in signal handlers, which may have interrupted the interpreter anywhere: its
// frames are then not to be read.
static cpython::Asker asker_of_mapping() noexcept {
  cpython::Asker asker = cpython::asker();
  if (asker.state != nullptr && stacks::is_interrupted()) asker.state = nullptr;
  return asker;
}

void range_mapped(std::uint32_t event, const void* at, std::size_t size) noexcept {
  const int before = errno;
  const cpython::Asker asker = asker_of_mapping();
  if (event == kMoved) {
    block_taken<format::MmapMoved, true>(Domain::mmap, event, at, size, asker);
  } else {
    block_taken<format::MmapAllocated, true>(Domain::mmap, event, at, size, asker);
  }
  errno = before;
}

std::uint64_t time_before_unmapping() noexcept {
  const int before = errno;
  store::make_room(detail::memory_options.recording.load(std::memory_order_relaxed));
  errno = before;
  return base::ticks();
}

// A time that lies back stands for no other: what this thread or another tells next has its own.
static void unmap(std::uint64_t since, const void* at, std::size_t size) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t whole = (size + page - 1) & ~(page - 1);
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  const std::uint32_t recording = detail::memory_options.recording.load(std::memory_order_relaxed);
  if (detail::detail_now() == Detail::state) {
    if (store::store().in_wiped_child()) return;
    return blocks_in_use().unmap(since, first, whole);
  }
  stacks::StackId stack = stacks::kEmpty;
  if (detail::detail_now() == Detail::full) {
    stack = detail::memory_stack(recording, asker_of_mapping(), __builtin_frame_address(0));
  }
  using R = format::Unmapped;
  store::write_with<R>(recording, [&](store::Cursor& cursor, std::uint64_t) {
    return R::encode(cursor.next(), cursor.deltas, since, first, whole, std::uint64_t{stack});
  });
  detail::memory_options.last_teller.store(nullptr, std::memory_order_relaxed);
}

void range_unmapped(std::uint64_t since, const void* at, std::size_t size) noexcept {
  const int before = errno;
  if (detail::wanted(kGiven)) unmap(since, at, size);
  errno = before;
}

namespace detail {

MemoryOptions memory_options;

// Instead of an event, where only what is in use counts.
static void keep_block(std::uint32_t recording, Domain domain, std::uint64_t address,
                       std::uint64_t size, stacks::StackId stack) noexcept {
  if (store::store().in_wiped_child()) return;
  const store::Cursor* cursor = store::detail::this_cursor;
  const bool known = cursor != nullptr && cursor->generation == recording;
  const std::uint32_t thread = known ? cursor->thread : store::store().this_thread(true);
  BlockInUse block;
  block.address = address;
  block.size = size;
  block.time = base::ticks();
  block.stack = stack;
  block.thread = thread & ((1u << 29) - 1);
  block.domain = static_cast<std::uint32_t>(domain) & 7;
  if (!blocks_in_use().put(recording, block)) ++memory_options.blocks_lost;
  if (block.time >= memory_options.next_sample.load(std::memory_order_relaxed)) [[unlikely]]
    sample_resident(recording, block.time);
}

static void forget_block(std::uint64_t address) noexcept {
  last_given = {};
  if (store::store().in_wiped_child()) return;
  last_given = blocks_in_use().take(address).value_or(BlockInUse{});
}

bool taken_otherwise(std::uint32_t recording, Domain domain, std::uint32_t event,
                     std::uint64_t address, std::uint64_t size, cpython::Asker asker,
                     const void* frame) noexcept {
  if (!wanted(event)) return true;
  if (detail_now() != Detail::state) return false;
  keep_block(recording, domain, address, size, memory_stack(recording, asker, frame));
  return true;
}

bool given_otherwise(std::uint32_t recording, std::uint64_t address, const void* frame) noexcept {
  if (!wanted(kGiven)) return true;
  const Detail detail = detail_now();
  if (detail == Detail::alloc) return false;
  if (detail == Detail::state) {
    forget_block(address);
  } else {
    const cpython::Asker asker = cpython::asker();
    const bool moving = stacks::is_between_stacks(frame);
    const stacks::StackId stack = moving ? stacks::kEmpty : memory_stack(recording, asker, frame);
    tell_block<format::FreedAt>(recording, asker.attached, address, std::uint64_t{stack});
  }
  return true;
}

// A thread that Python does not know has native frames.
[[gnu::noinline]] static stacks::StackId mixed_stack(std::uint32_t recording, cpython::Asker asker,
                                                     const void* frame) noexcept {
  if (store::store().in_wiped_child()) return stacks::kEmpty;
  if (stacks::walk_in_use() != stacks::Walk::fast) asker.state = nullptr;
  const stacks::StackId stack =
      stacks::whole_part(stacks::capture_mixed(asker, frame, 0, stacks::kNoLimit));
  if (!store::store().has_stack(recording, stack)) [[unlikely]]
    write_stack(recording, stack);
  return stack;
}

// By the public API frame objects would be made, in the middle of an allocation: then there are no
// stacks.
stacks::StackId memory_stack(std::uint32_t recording, cpython::Asker asker,
                             const void* native) noexcept {
  if (memory_options.native.load(std::memory_order_relaxed))
    return mixed_stack(recording, asker, native);
  if (asker.state == nullptr || stacks::walk_in_use() != stacks::Walk::fast ||
      store::store().in_wiped_child()) {
    return stacks::kEmpty;
  }
  const cpython::Frame* frame = cpython::innermost(asker.state);
  stacks::PrefixCache* cache = stacks::PrefixCache::mine();
  if (frame == nullptr || cache == nullptr) return stacks::kEmpty;
  const stacks::StackId stack =
      stacks::whole_part(asker.attached ? cache->stack_at(frame) : cache->stack_at_detached(frame));
  if (!store::store().has_stack(recording, stack)) [[unlikely]]
    write_stack(recording, stack);
  return stack;
}

// Threads that come at the same time may both write one: that does no harm.
void sample_resident(std::uint32_t recording, std::uint64_t now) noexcept {
  constexpr std::uint64_t kBetween = 20'000'000;  // nanoseconds
  static const std::uint64_t between = base::ticks_in(kBetween);
  memory_options.next_sample.store(now + between, std::memory_order_relaxed);
  const std::uint64_t bytes = base::resident_bytes();
  if (bytes != 0) store::write<format::Resident>(recording, bytes);
}

void no_memory(std::uint32_t recording, Domain domain, std::size_t size, cpython::Asker asker,
               const void* frame) noexcept {
  if (!wanted(kOutOfMemory)) return;
  const stacks::StackId stack = memory_stack(recording, asker, frame);
  store::write<format::OutOfMemory>(recording, static_cast<std::uint64_t>(domain), size,
                                    std::uint64_t{0}, std::uint64_t{stack});
}

}  // namespace detail
}  // namespace whence::probes
