// check.cpp: one capture, made in all ways that there are. See storm.h.
#include <execinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "base/libraries_generation.h"
#include "storm/storm.h"
#include "unwind/walk.h"

using namespace whence::unwind;

namespace storm {

Counts counts;
std::atomic<std::int64_t> wanted;
thread_local Here here;

void fail(const char* what) noexcept {
  std::fprintf(stderr, "storm: %s\n", what);
  for (Trail* trail : {&here.interrupted, &here.trail}) {
    for (std::size_t i = trail->size(); i-- != 0;) {
      const Trail::Link& link = (*trail)[i];
      std::fprintf(stderr, "  pc %#" PRIxPTR " sp %#" PRIxPTR " end %#" PRIxPTR "%s\n", link.pc,
                   link.sp, link.end, link.exact ? " exact" : "");
    }
    std::fprintf(stderr, "\n");
  }
  std::abort();
}

namespace {

constexpr std::uint64_t kComparedEvery = 64;

// The trail and a walk from the same registers: frame for frame.
void check_walk(Trail& trail, const Registers& at) noexcept {
  std::size_t seen = 0;
  const End end = walk(at, whence::base::libraries_generation(), [&](const Frame& frame) {
    if (seen == trail.size()) fail("a walk goes further than the trail");
    const Trail::Link& link = trail[trail.size() - ++seen];
    if (link.pc != frame.pc || link.sp != frame.sp || link.end != frame.end) {
      std::fprintf(stderr, "walked: pc %#" PRIxPTR " sp %#" PRIxPTR " end %#" PRIxPTR "\n",
                   frame.pc, frame.sp, frame.end);
      fail("a frame of the walk is another than that of the trail");
    }
    return true;
  });
  if (seen != trail.size()) fail("the trail goes further than a walk");
  if (end != trail.end()) fail("the trail ends in another way than a walk");
}

// The C library's own opinion, as far as ours goes. It has frames of its own further in.
[[gnu::noinline]] void check_with_glibc(Trail& trail) noexcept {
  constexpr int kMost = 256;
  void* found[kMost];
  const int count = backtrace(found, kMost);
  const std::size_t size = trail.size();
  if (size < 2) return;
  const auto ours = [&](std::size_t i) {
    return reinterpret_cast<void*>(trail[size - 1 - i].at.pc);
  };
  int first = 0;
  while (first < count && found[first] != ours(1)) ++first;
  const auto theirs = static_cast<std::size_t>(count - first);
  for (std::size_t i = 1; i < size && i <= theirs; ++i) {
    if (found[static_cast<std::size_t>(first) + i - 1] == ours(i)) continue;
    std::fprintf(stderr, "frame %zu: glibc %p, here %p\n", i,
                 found[static_cast<std::size_t>(first) + i - 1], ours(i));
    fail("glibc finds another frame");
  }
  if (trail.end() == End::outermost && theirs + 1 != size && count < kMost) {
    std::fprintf(stderr, "glibc %zu, here %zu\n", theirs + 1, size);
    fail("glibc finds more or fewer frames");
  }
  counts.compared.fetch_add(1, std::memory_order_relaxed);
}

void count(Trail& trail) noexcept {
  counts.captures.fetch_add(1, std::memory_order_relaxed);
  counts.frames.fetch_add(trail.size(), std::memory_order_relaxed);
  if (trail.end() != End::outermost) counts.early.fetch_add(1, std::memory_order_relaxed);
  if (trail.size() > counts.deepest.load(std::memory_order_relaxed)) counts.deepest = trail.size();
  wanted.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

[[gnu::noinline]] void capture() noexcept {
  const Registers at = registers_here();
  if (!here.trail.follow(at)) fail("there is no memory");
  check_walk(here.trail, at);
  count(here.trail);
  if (here.unprovable == 0 && here.trail.end() != End::outermost) fail("a walk ended early");
  if (here.unlisted == 0 && random(kComparedEvery) == 0) check_with_glibc(here.trail);
}

// Inside a handler, of whatever was running: no part of it has promised anything. Where libgcc is
// about to enter a landing pad its own table is wrong for some instructions, and glibc crashes; on
// aarch64 it does so in the loader, too. A sanitizer looks at what backtrace() does under a lock of
// its own, which may be held by what was interrupted.
[[gnu::noinline]] void capture_interrupted() noexcept {
  const Registers at = registers_here();
  if (!here.interrupted.follow(at)) fail("there is no memory");
  check_walk(here.interrupted, at);
  count(here.interrupted);
  counts.interrupted.fetch_add(1, std::memory_order_relaxed);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
  if (here.unlisted == 0 && here.throwing == 0) check_with_glibc(here.interrupted);
#endif
}

}  // namespace storm
