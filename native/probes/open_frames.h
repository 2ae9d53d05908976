// open_frames.h: the frames that a thread has open, as far as calls are recorded.
//
// Threads: each its own. Allocates: by mmap, for a deeper stack than any before.
// Fails by: push() must not be called without room; make_room() returns false.
//
//      bottom_  [0] end   [1] outermost ... [n] innermost  <- top
//                   ^ a frame of nullptr: what is below the outermost frame
//
// Nothing here is a Python object, and no frame is ever read through it: the addresses are only
// compared. A frame may be gone without anybody having told.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpython/frames.h"
#include "stacks/stack_table.h"

namespace whence::probes {

struct OpenFrame {
  std::uintptr_t frame;   // its address, and tags
  stacks::CodeId code;    // 0: not known
  stacks::StackId stack;  // of it and its callers, by code alone; 0: not asked for yet
};

// In the low bits of the address. A tagged frame equals no frame, so whatever is entered from it or
// leaves it takes the slow path.
inline constexpr std::uintptr_t kSilent = 1;      // not recorded, for its depth
inline constexpr std::uintptr_t kDelegating = 2;  // open only while the frame above it is
inline constexpr std::uintptr_t kWatched = 4;     // what it returns is looked at
inline constexpr std::uintptr_t kTags = 7;

class OpenFrames {
 public:
  [[nodiscard, gnu::always_inline]] OpenFrame& top() noexcept { return *top_; }
  [[nodiscard, gnu::always_inline]] bool full() const noexcept { return top_ >= last_; }
  [[gnu::always_inline]] void push(std::uintptr_t frame, stacks::CodeId code) noexcept {
    *++top_ = {frame, code, stacks::kEmpty};
  }
  [[gnu::always_inline]] void pop() noexcept { --top_; }

  [[nodiscard]] std::size_t depth() const noexcept {
    return static_cast<std::size_t>(top_ - bottom_);
  }
  // From 1, the outermost.
  [[nodiscard]] OpenFrame& at(std::size_t level) noexcept { return bottom_[level]; }

  // From this depth on full() is true, so that the slow path hears of every frame.
  void watch_from(std::size_t depth) noexcept;
  [[nodiscard]] bool make_room(std::size_t depth) noexcept;
  void clear() noexcept { top_ = bottom_; }
  void release() noexcept;

 private:
  void set_last() noexcept;

  OpenFrame* top_ = nullptr;
  OpenFrame* last_ = nullptr;  // from here on, the slow path
  OpenFrame* bottom_ = nullptr;
  std::size_t room_ = 0;
  std::size_t watched_ = SIZE_MAX;
};

}  // namespace whence::probes
