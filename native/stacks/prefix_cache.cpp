// prefix_cache.cpp: the cold parts of prefix_cache.h.
#include "stacks/prefix_cache.h"

#include <algorithm>
#include <cstring>

#include "base/pages.h"
#include "stacks/intern.h"

namespace whence::stacks {
namespace {

constexpr std::size_t kFirstRoom = 127;  // with the end mark: one page

thread_local PrefixCache* my_cache = nullptr;
thread_local bool thread_ends = false;

}  // namespace

// Gives the cache back when the thread ends. Destructors that run later and capture find
// `thread_ends` and go without a cache: making a new one would leave it behind, or revive
// thread-local storage during its teardown.
struct CacheOwner {
  PrefixCache cache;
  ~CacheOwner() {
    thread_ends = true;
    my_cache = nullptr;
    cache.release();
  }
};

PrefixCache* PrefixCache::mine() noexcept {
  if (my_cache != nullptr) [[likely]]
    return my_cache;
  if (thread_ends) return nullptr;
  thread_local CacheOwner owner;
  if (!owner.cache.make_room(kFirstRoom)) return nullptr;
  return my_cache = &owner.cache;
}

StackId PrefixCache::refresh(std::size_t from) noexcept {
  whole_ = true;
  for (std::size_t at = from; at <= size_; ++at) fill(at, links_[at].frame);
  const StackId stack = links_[size_].stack;
  if (!whole_) size_ = 0;  // the next capture tries again, and is counted
  return stack;
}

StackId PrefixCache::rebuild(const cpython::Frame* innermost) noexcept {
  const std::uint64_t epoch = store().codes.epoch();
  if (epoch != epoch_) size_ = 0;
  epoch_ = epoch;

  std::size_t depth = 0;
  for (auto* frame = innermost; frame != nullptr; frame = cpython::previous(frame)) ++depth;
  if (!make_room(depth)) {
    size_ = 0;
    store().stacks.count_truncated();
    return kTruncated;
  }
  // Frames go to their places from the innermost on. What a link knows holds for any frame with the
  // same code at the same instruction and the same callers, wherever it lies in memory, so only a
  // frame that differs in that ends the common part.
  std::size_t common = std::min(size_, depth);
  std::size_t at = depth;
  for (auto* frame = innermost; frame != nullptr; frame = cpython::previous(frame), --at) {
    Link& link = links_[at];
    if (at > size_) link = {frame, 0, 0, kEmpty, kNoCode};
    link.frame = frame;
    if (at > size_ || !unchanged(link)) common = std::min(common, at - 1);
  }
  size_ = depth;
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
  if (link.executable != executable) link.code = store().codes.id_of(code);
  link.executable = executable;
  link.instruction = cpython::instruction(frame);
  link.stack = intern_frame(caller, link.code, cpython::offset_in(code, link.instruction));
  // A code object without an id has no notice of its death, so its address must not be remembered.
  whole_ = whole_ && link.code != kNoCode && !is_truncated(link.stack);
}

bool PrefixCache::make_room(std::size_t links) noexcept {
  if (links + 1 <= room_) return true;
  const std::size_t room = std::max(links + 1, room_ * 2);
  auto* larger = static_cast<Link*>(base::map_pages(room * sizeof(Link)));
  if (larger == nullptr) return false;
  if (size_ != 0) std::memcpy(larger, links_, (size_ + 1) * sizeof(Link));
  base::unmap_pages(links_, room_ * sizeof(Link));
  links_ = larger;
  room_ = room;
  return true;
}

void PrefixCache::release() noexcept {
  base::unmap_pages(links_, room_ * sizeof(Link));
  links_ = nullptr;
  size_ = room_ = 0;
}

}  // namespace whence::stacks
