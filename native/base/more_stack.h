// more_stack.h: further C stack for a thread that runs low on its own.
//
// Threads: each its own. Allocates: by mmap, when a thread runs low.
// Fails by: going on with the stack that there is.
//
//      the thread's stack          a segment               the next
//      +------------------+        +------------------+    +------------------+
//      | ... frames ...   |   .--> | ... frames ...   |    |                  |
//      |------------------| --'    |------------------|--> |                  |
//      | margin           |        | margin           |    | margin           |
//      +------------------+        +-- guard page ----+    +-- guard page ----+
//
// A call that finds less than the margin left is continued on a segment. What it calls has as much
// room there as it would have had on a thread of this kind. The frame that switches describes
// itself to unwinders, so exceptions, pthread_exit() and debuggers pass through it.
#pragma once

#include <cstddef>

namespace whence::base {

class MoreStack {
 public:
  using Body = void* (*)(void* argument);

  // Finds this thread's own stack; until then, and if it cannot be found, low() is never true.
  void prepare() noexcept;

  [[nodiscard, gnu::always_inline]] bool low() const noexcept {
    return static_cast<char*>(__builtin_frame_address(0)) < low_water_;
  }

  // body(argument), on a segment if there is memory for one. May be unwound through.
  void* call(Body body, void* argument);

  // When the thread ends.
  void release() noexcept;

 private:
  struct Segment;
  struct Back;

  [[nodiscard]] Segment* next_segment() noexcept;
  void release_after(Segment* segment) noexcept;

  char* low_water_ = nullptr;
  std::size_t size_ = 0;         // of each segment
  Segment* current_ = nullptr;   // nullptr: the thread's own stack
  Segment* segments_ = nullptr;  // the outermost
};

}  // namespace whence::base
