// prefix_cache.h: the stack that a thread captured last, frame by frame, to compare the next one
// with.
//
// Threads: one cache for each thread, entered by that thread alone, attached to its interpreter.
// Allocates: never on the hot path; a deeper stack than any before maps more pages.
// Fails by: a truncated id, counted.
//
// Most captures see the frames of the one before, most of them at the same instruction. So the
// whole chain is kept:
//
//     links   [0] end   [1] outermost ... [n-1] caller  [n] innermost
//                 ^ a frame of nullptr: what the outermost frame's `previous` holds
//
// and one pass inwards-out checks that frame, code and instruction are still the same. The next
// frame's address is taken from the links and only checked against `previous`, so the loads do not
// wait for each other: about 1 ns a frame. Where an instruction has moved, the ids from there
// inwards are looked up again; where the chain itself is another, it is compared link by link from
// the outermost end. Addresses of dead code objects come back with other code, so a cache older
// than the last death of a captured code object is not used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpython/frames.h"
#include "stacks/store.h"

namespace whence::stacks {

class PrefixCache {
 public:
  // This thread's cache, or nullptr for lack of memory or because the thread is ending.
  [[nodiscard]] static PrefixCache* mine() noexcept;

  // The stack whose innermost frame is `frame`.
  [[nodiscard]] StackId stack_at(const cpython::Frame* frame) noexcept;

 private:
  friend struct CacheOwner;

  // Hidden frames have links too, with the id of their caller and kHidden for a code.
  struct Link {
    const cpython::Frame* frame;
    std::uintptr_t executable;  // 0 in hidden links: they are judged anew each time
    std::uintptr_t instruction;
    StackId stack;
    CodeId code;
  };
  static constexpr CodeId kHidden = 0xFFFFFFFF;

  [[nodiscard]] static bool unchanged(const Link& link) noexcept;
  [[nodiscard]] StackId refresh(std::size_t from) noexcept;
  [[nodiscard]] StackId rebuild(const cpython::Frame* frame) noexcept;
  void fill(std::size_t at, const cpython::Frame* frame) noexcept;
  [[nodiscard]] bool make_room(std::size_t links) noexcept;
  void release() noexcept;

  Link* links_ = nullptr;  // links_[0] is the end mark
  std::size_t size_ = 0;   // real links: [1] to [size_]
  std::size_t room_ = 0;
  std::uint64_t epoch_ = 0;  // the registry's when the links were made
  bool whole_ = true;        // every link filled since refresh() began may be kept
};

// The hot path. Budget: 15 instructions a frame for the same live stack (bench/instructions.py).
inline StackId PrefixCache::stack_at(const cpython::Frame* frame) noexcept {
  if (size_ == 0 || links_[size_].frame != frame || epoch_ != store().codes.epoch()) {
    return rebuild(frame);
  }
  const Link* moved = nullptr;  // the outermost link whose frame is at another instruction now
  for (const Link* link = links_ + size_; link != links_; --link) {
    if (!unchanged(*link)) [[unlikely]]
      moved = link;
    if (cpython::previous(link->frame) != link[-1].frame) [[unlikely]]
      return rebuild(frame);
  }
  return moved == nullptr ? links_[size_].stack : refresh(static_cast<std::size_t>(moved - links_));
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
