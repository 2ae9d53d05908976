// prefix_cache.h: the stack that a thread captured last, frame by frame, to compare the next one
// with.
//
// Threads: one cache for each thread, entered by that thread alone, attached to its interpreter or
// by stack_at_detached(); also inside an allocator.
// Allocates: never on the hot path; a deeper stack than any before maps more pages.
// Fails by: a truncated id, counted.
//
// Most captures see the frames of the one before, most of them at the same instruction. So the
// whole chain is kept:
//
//     links   [0] end   [1] outermost ... [n-1] caller  [n] innermost
//                 ^ a frame of nullptr: what the outermost frame's `previous` holds
//
// Frames that wait for a call carry a mark with the number of their link (cpython/call_marks.h). A
// mark that is still there says that this frame and all outside it are as they were: the walk ends
// at the innermost one, mostly the caller of the frame that runs, however deep the stack is. From
// there inwards, frames are compared with their links, and where code or instruction differ, ids
// are looked up again.
//
// A frame that runs comes back to the same few instructions: what they came to under their caller
// is kept in a small table, so that most look-ups are one comparison.
//
// Where there are no marks, each frame is compared with its link: about 1 ns each. Addresses of
// dead code objects come back with other code, so a cache older than the last death of a captured
// code object is not used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpython/call_marks.h"
#include "cpython/frames.h"
#include "stacks/store.h"

namespace whence::stacks {

class PrefixCache {
 public:
  // This thread's cache, or nullptr for lack of memory or because the thread is ending.
  [[nodiscard, gnu::always_inline]] static PrefixCache* mine() noexcept;

  // The stack whose innermost frame is `frame`.
  [[nodiscard]] StackId stack_at(const cpython::Frame* frame) noexcept;

  // The same without the GIL. The frames are this thread's own and stand still.
  [[nodiscard]] StackId stack_at_detached(const cpython::Frame* frame) noexcept;

  // Runs of the evaluation loop in the stack that was asked for last have numbers: 0 for what is
  // outside all of them, then outermost first. Runs below this number are as they were when it was
  // asked for last.
  [[nodiscard]] std::size_t settled_runs() noexcept { return std::exchange(settled_, run_count_); }
  // Those from that number on, innermost first: visit(number, first frame, the stack up to the
  // innermost frame of the run, the stack outside it).
  template <class Visit>
  void for_each_run(std::size_t from, Visit&& visit) const noexcept;

  // For the C library, when the thread ends.
  static void release(void* cache) noexcept;

 private:
  // Hidden frames have links too, with the id of their caller and kHidden for a code.
  struct Link {
    const cpython::Frame* frame;
    std::uintptr_t executable;  // 0 in hidden links: they are judged anew each time
    std::uintptr_t instruction;
    StackId stack;
    CodeId code;
  };
  static constexpr CodeId kHidden = 0xFFFFFFFF;

  struct Recent {
    std::uintptr_t instruction;
    StackId caller, stack;
  };
  static constexpr std::size_t kRecents = 2048;  // 32 KB

  // How far the links hold, and how many frames there are inside of that. Frames up to `waiting`
  // have not moved; others may have been called anew, to the same places.
  struct Found {
    std::size_t outside, inside, waiting;
  };

  [[nodiscard]] static bool unchanged(const Link& link) noexcept;
  [[nodiscard]] Recent& recent(StackId caller, std::uintptr_t instruction) const noexcept;
  [[nodiscard]] Found find(const cpython::Frame* innermost) const noexcept;
  // No run further in than that is settled.
  void settle(std::size_t waiting) noexcept;
  [[nodiscard]] StackId refresh(std::size_t from) noexcept;
  [[nodiscard, gnu::noinline]] StackId rebuild(const cpython::Frame* innermost,
                                               Found found) noexcept;
  void fill(std::size_t at, const cpython::Frame* frame) noexcept;
  [[nodiscard]] bool make_room(std::size_t links) noexcept;
  [[nodiscard]] static PrefixCache* make_mine() noexcept;

  Link* links_ = nullptr;  // links_[0] is the end mark
  Recent* recents_ = nullptr;
  std::uint32_t* runs_ = nullptr;  // the links that begin one, outermost first; as much room
  std::size_t run_count_ = 0;
  std::size_t settled_ = 0;  // see settled_runs(); the innermost run may always change
  std::size_t depth_ = 0;    // links of the last stack, of which size_ may be kept
  std::size_t size_ = 0;     // real links: [1] to [size_]
  std::size_t room_ = 0;
  std::uint64_t epoch_ = 0;  // the registry's when the links were made
  std::size_t kept_ = 0;     // refresh() has filled links up to here that may be kept
  std::uint32_t owner_ = 0;  // in marks: this cache, and no other that there has been
  bool attached_ = true;     // the thread is
  bool ends_ = false;        // the thread does
};

namespace detail {
[[gnu::tls_model("initial-exec")]] extern thread_local constinit PrefixCache prefix_cache;
}

inline PrefixCache* PrefixCache::mine() noexcept {
  PrefixCache& cache = detail::prefix_cache;
  return cache.links_ != nullptr ? &cache : make_mine();
}

// Frames without a mark are compared with the links where they would be: if all of them are there,
// what the links know of the caller of the innermost one holds.
inline PrefixCache::Found PrefixCache::find(const cpython::Frame* innermost) const noexcept {
  const cpython::Frame* callee = innermost;
  std::size_t inside = 1, outside = 0;
  bool same = true;
  for (auto* frame = cpython::previous(innermost); frame != nullptr;
       callee = frame, frame = cpython::previous(frame), ++inside) {
    const std::uintptr_t mark = cpython::call_mark(frame, callee, owner_);
    const std::size_t at = cpython::number_of(mark);
    if (mark != 0 && at <= size_ && links_[at].frame == frame && unchanged(links_[at])) {
      outside = at;
      break;
    }
    same = same && inside < size_ && links_[size_ - inside].frame == frame &&
           unchanged(links_[size_ - inside]);
  }
  if (same && outside + inside == size_) return {size_ - 1, 1, outside};
  return {outside, inside, outside};
}

inline void PrefixCache::settle(std::size_t waiting) noexcept {
  std::size_t runs = run_count_;
  while (runs != 0 && runs_[runs - 1] > waiting) --runs;
  settled_ = std::min(settled_, runs);
}

// The hot path. Budget: 70 instructions for a frame whose caller has a mark, 15 for each frame more
// (bench/instructions.py).
inline StackId PrefixCache::stack_at(const cpython::Frame* frame) noexcept {
  if (epoch_ != store().codes.epoch()) [[unlikely]]
    size_ = 0;
  const Found found = find(frame);
  if (found.waiting + 1 < size_) settle(found.waiting);
  Link& link = links_[size_];
  if (found.inside != 1 || found.outside + 1 != size_ || link.frame != frame || depth_ != size_) {
    return rebuild(frame, found);
  }
  if (unchanged(link)) return link.stack;
  const std::uintptr_t instruction = cpython::instruction(frame);
  const StackId caller = links_[size_ - 1].stack;
  const Recent& known = recent(caller, instruction);
  if (known.instruction != instruction || known.caller != caller ||
      cpython::executable(frame) != link.executable) {
    return refresh(size_);
  }
  link.instruction = instruction;
  return link.stack = known.stack;
}

template <class Visit>
void PrefixCache::for_each_run(std::size_t from, Visit&& visit) const noexcept {
  std::size_t inner = depth_;  // the innermost link of the run
  std::size_t number = run_count_;
  for (; number != 0 && number >= from; --number) {
    const std::size_t first = runs_[number - 1];
    visit(number, links_[first].frame, links_[inner].stack, links_[first - 1].stack);
    inner = first - 1;
  }
  if (from != 0 || inner == 0) return;
  visit(number, static_cast<const cpython::Frame*>(nullptr), links_[inner].stack, kEmpty);
}

inline PrefixCache::Recent& PrefixCache::recent(StackId caller,
                                                std::uintptr_t instruction) const noexcept {
  return recents_[(instruction / cpython::kCodeUnit + caller) % kRecents];
}

inline bool PrefixCache::unchanged(const Link& link) noexcept {
  const cpython::Frame* frame = link.frame;
  const auto difference = (cpython::executable(frame) ^ link.executable) |
                          (cpython::instruction(frame) ^ link.instruction);
  if (difference == 0) [[likely]]
    return true;
  return link.code == kHidden && cpython::hidden(frame);
}

}  // namespace whence::stacks
