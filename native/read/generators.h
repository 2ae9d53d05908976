// generators.h: which generator or coroutine a frame belongs to, and which task runs it.
//
// Threads: an instance belongs to one. Allocates: for generators that are not finished, and for
// coroutines of tasks, up to a budget. Fails by: an instance of 0; std::bad_alloc.
//
// A recording tells generators that live at the same time apart by a number, which may come back
// when one is gone. Here each gets a number of its own: an instance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "read/budget.h"
#include "read/names.h"

namespace whence::read {

struct Activation {
  std::uint64_t instance;  // 0: there was no room to tell it from others
  std::uint64_t task;      // 0: none
};

class Generators {
 public:
  // The names and the budget outlive it. Instances are numbered from `base` + 1.
  Generators(const Names& names, Budget& budget, std::uint64_t base);

  // One that has not run before.
  [[nodiscard]] Activation call(std::uint64_t generator, std::uint64_t time);
  // The one that ran under this number last.
  [[nodiscard]] Activation resume(std::uint64_t generator, std::uint64_t time);
  void leave(std::uint64_t generator, std::uint64_t instance, std::uint64_t time, bool finished);

 private:
  struct Slot {
    std::uint64_t instance = 0;            // 0: none has run under this number
    std::uint64_t last_seen = 0;           // running
    std::uint64_t before = 0;              // when the instance before this one was last seen
    std::uint32_t runs = 0, runs_end = 0;  // of tasks, in `runs_`
    bool has_before = false;
    bool finished = false;
  };

  [[nodiscard]] Slot* slot(std::uint64_t generator);
  [[nodiscard]] Activation enter(Slot& slot, std::uint64_t time) const noexcept;
  [[nodiscard]] std::uint64_t task_of(const Slot& slot, std::uint64_t time) const noexcept;
  void forget_finished();

  Budget& budget_;
  std::vector<TaskRun> runs_;  // by generator, then time
  IdMap<Slot> slots_;
  std::size_t sweep_at_;
  std::uint64_t instances_;
};

}  // namespace whence::read
