// mixed.h: the stack of this thread with its native frames, each Python frame in its true place.
//
// Threads: one instance for each thread, entered by that thread alone, with the GIL or without; not
// inside a signal handler.
// Allocates: by mmap, for deeper stacks than any before. Fails by: the Python frames alone.
//
// A native frame of the evaluation loop stands for Python frames, and they take its place. Which
// frame that is, is known by address (cpython/evaluations.h). What was found is kept with the trail
// of native frames, outermost first, so that only what has changed since is put together anew:
//
//     trail   [0] _start  [1] main  [2] loop   [3] call  [4] cfunction  [5] qsort ... [n-1]
//     runs                          main()                                f(), g()
//     notes   the stack up to each link, with the Python frames of the runs in it
//
// Runs whose frames have waited ever since are not even looked at: PrefixCache knows which, and so
// what a capture costs does not depend on how many there are.
//
// Where the walk of native frames ended early, Python frames further out follow after a remark that
// some are missing; so do the frames where it went on beyond code that it could not leave. Where
// frames cannot be brought together at all, both parts are there, one after the other, and a remark
// says so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpython/state_slot.h"
#include "stacks/stack_table.h"
#include "unwind/trail.h"

namespace whence::stacks {

class MixedStacks {
 public:
  // This thread's, or nullptr for lack of memory or because the thread is ending.
  [[nodiscard]] static MixedStacks* mine() noexcept;
  // The same, or nullptr if it has never been asked for.
  [[nodiscard]] static MixedStacks* if_made() noexcept;

  // The whole stack: the native frames from `at` on, and the Python frames of whoever asks.
  // `exact`: the pc is an instruction's own, not one to return to.
  [[nodiscard]] StackId stack_at(cpython::Asker asker, const unwind::Registers& at,
                                 bool exact) noexcept;

  // See Trail.
  void count_hits() noexcept { trail_.count_hits(); }

  // For the C library, when the thread ends.
  static void release(void* stacks) noexcept;

 private:
  // Of the evaluation loop.
  struct Run {
    unwind::Address place;  // an address in its native frame; 0: not known
    StackId python;         // the Python stack up to its innermost frame
    std::uint32_t frames;   // of that which are its own
    std::uint32_t link;     // in the trail; kNowhere
    std::uint32_t number;   // see PrefixCache
  };
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

  // A stack with one more node, as it was found last: the table of all stacks is large.
  struct Recent {
    StackId outer;
    CodeId code;
    std::int32_t offset;
    StackId stack;
  };
  static constexpr std::size_t kRecents = 2048;  // 32 KB

  [[nodiscard]] StackId add(StackId outer, CodeId code, std::int32_t offset,
                            std::uint32_t frames = 1) noexcept;
  [[nodiscard]] StackId add(StackId outer, unwind::FrameName name) noexcept;
  [[nodiscard]] StackId add(StackId outer, const Run& run) noexcept;
  [[nodiscard]] StackId add_gap(StackId outer) noexcept;
  [[nodiscard]] bool collect_runs(PyThreadState* state) noexcept;
  void take_runs(std::size_t kept, std::size_t found) noexcept;
  [[nodiscard]] unwind::Address place_outside(unwind::Address sp) const noexcept;
  void name_links() noexcept;
  [[nodiscard]] bool place_runs(std::size_t& valid) noexcept;
  [[nodiscard]] StackId merge(std::size_t valid) noexcept;
  [[nodiscard]] StackId unmerged(StackId python) noexcept;
  [[nodiscard]] bool make_room() noexcept;
  [[nodiscard]] static MixedStacks* make_mine() noexcept;

  unwind::Trail trail_;
  Run* runs_ = nullptr;  // outermost first: room_ of them, and room_ more for those just found
  Recent* recents_ = nullptr;
  std::size_t run_count_ = 0, room_ = 0;
  std::size_t same_ = 0;              // so many of them are as they were the last time
  std::size_t lost_ = 0;              // so many of them are beyond the end of the trail
  std::uint32_t changed_ = kNowhere;  // the link of the first that is not as it was
  bool ends_ = false;
};

}  // namespace whence::stacks
