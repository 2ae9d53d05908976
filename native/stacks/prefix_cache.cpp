// prefix_cache.cpp: the cold parts of prefix_cache.h.
#include "stacks/prefix_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/pages.h"
#include "base/thread_end.h"
#include "cpython/evaluations.h"
#include "stacks/intern.h"

namespace whence::stacks {

constinit thread_local PrefixCache detail::prefix_cache = {};

namespace {

constexpr std::size_t kFirstRoom = 112;  // with the end mark and runs: one page

const base::ThreadEnd end_of_thread(PrefixCache::release);

std::atomic<std::uint32_t> caches = 0;

}  // namespace

PrefixCache* PrefixCache::make_mine() noexcept {
  PrefixCache& cache = detail::prefix_cache;
  if (cache.ends_ || !end_of_thread.watch(&cache)) return nullptr;
  if (cache.owner_ == 0) {
    constexpr std::uint32_t kMost = 0x7FFFFFFF;  // what a mark has room for
    cache.owner_ = caches.fetch_add(1, std::memory_order_relaxed) % kMost + 1;
  }
  if (cache.recents_ == nullptr) {
    cache.recents_ = static_cast<Recent*>(base::map_pages(kRecents * sizeof(Recent)));
  }
  return cache.recents_ != nullptr && cache.make_room(kFirstRoom) ? &cache : nullptr;
}

// Destructors that run later and capture go without a cache: nobody would give a new one back.
void PrefixCache::release(void* cache) noexcept {
  auto& self = *static_cast<PrefixCache*>(cache);
  base::unmap_pages(self.links_, self.room_ * (sizeof(Link) + sizeof(*runs_)));
  base::unmap_pages(self.recents_, kRecents * sizeof(Recent));
  self = {};
  self.ends_ = true;
}

StackId PrefixCache::refresh(std::size_t from) noexcept {
  kept_ = size_;
  for (std::size_t at = from; at <= size_; ++at) fill(at, links_[at].frame);
  const StackId stack = links_[size_].stack;
  size_ = kept_;  // the next capture tries the others again
  return stack;
}

StackId PrefixCache::stack_at_detached(const cpython::Frame* frame) noexcept {
  attached_ = false;
  const StackId stack = stack_at(frame);
  attached_ = true;
  return stack;
}

StackId PrefixCache::rebuild(const cpython::Frame* innermost, Found found) noexcept {
  const std::uint64_t epoch = store().codes.epoch();
  if (epoch != epoch_) std::memset(recents_, 0, kRecents * sizeof(Recent));
  epoch_ = epoch;
  const std::size_t depth = found.outside + found.inside;
  if (!make_room(depth)) {
    size_ = depth_ = run_count_ = settled_ = 0;
    store().stacks.count_truncated();
    return kTruncated;
  }
  // Frames go to their places from the innermost on. What a link knows holds for any frame with the
  // same code at the same instruction and the same callers, wherever it lies in memory, so only a
  // frame that differs in that ends the common part.
  std::size_t common = std::min(size_, depth);
  const cpython::Frame* callee = nullptr;
  std::size_t at = depth;
  for (auto* frame = innermost; at != found.outside;
       callee = frame, frame = cpython::previous(frame), --at) {
    Link& link = links_[at];
    if (at > size_) link = {frame, 0, 0, kEmpty, kNoCode};
    link.frame = frame;
    if (at > size_ || !unchanged(link)) common = std::min(common, at - 1);
    if (callee != nullptr && !cpython::hidden(frame)) {
      cpython::mark_call(frame, callee, cpython::make_mark(owner_, at));
    }
  }
  size_ = depth_ = depth;
  while (run_count_ != 0 && runs_[run_count_ - 1] > found.outside) --run_count_;
  settled_ = std::min(settled_, run_count_);
  for (at = found.outside + 1; at <= depth; ++at) {
    if (cpython::begins_run(links_[at].frame)) runs_[run_count_++] = static_cast<std::uint32_t>(at);
  }
  return refresh(common + 1);
}

void PrefixCache::fill(std::size_t at, const cpython::Frame* frame) noexcept {
  Link& link = links_[at];
  const StackId caller = links_[at - 1].stack;
  if (cpython::hidden(frame)) {
    link = {frame, 0, 0, caller, kHidden};
    return;
  }
  const std::uintptr_t executable = cpython::executable(frame);
  PyCodeObject* code = cpython::code_of(executable);
  // A code object without an id has no notice of its death, and neither has one whose id was found
  // without the GIL: their addresses must not be remembered.
  bool keep = true;
  if (link.executable != executable) {
    CodeRegistry& codes = store().codes;
    link.code = attached_ ? codes.id_of(code) : codes.id_by_content(code);
    keep = attached_ && link.code != kNoCode;
  }
  link.executable = executable;
  link.instruction = cpython::instruction(frame);
  Recent& known = recent(caller, link.instruction);
  if (known.instruction == link.instruction && known.caller == caller) {
    link.stack = known.stack;
    if (!keep) kept_ = std::min(kept_, at - 1);
    return;
  }
  link.stack = intern_frame(caller, link.code, cpython::offset_in(code, link.instruction));
  if (!keep || is_truncated(link.stack)) {
    kept_ = std::min(kept_, at - 1);
  } else {
    known = {link.instruction, caller, link.stack};
  }
}

bool PrefixCache::make_room(std::size_t links) noexcept {
  if (links + 1 <= room_) return true;
  const std::size_t room = std::max(links + 1, room_ * 2);
  constexpr std::size_t kBytes = sizeof(Link) + sizeof(*runs_);  // of both, for a link
  auto* larger = static_cast<Link*>(base::map_pages(room * kBytes));
  if (larger == nullptr) return false;
  auto* runs = reinterpret_cast<std::uint32_t*>(larger + room);
  if (size_ != 0) std::memcpy(larger, links_, (size_ + 1) * sizeof(Link));
  if (run_count_ != 0) std::memcpy(runs, runs_, run_count_ * sizeof(*runs_));
  base::unmap_pages(links_, room_ * kBytes);
  links_ = larger;
  runs_ = runs;
  room_ = room;
  return true;
}

}  // namespace whence::stacks
