// calls.h: calls put together from what enters frames and what leaves them.
//
// Threads: a reader of calls belongs to one. Allocates: for calls that are open, generators that
// are not finished, and threads, up to a budget that goes with the size of the file; what does not
// fit is counted. Fails by: Next; std::bad_alloc.
//
// FORMAT.md, "Calls", is the rule that this follows. Calls come as they end, chunk by chunk: in
// order within a thread, but not between threads. Within a thread, time never goes back: what
// says otherwise happens at the time before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "read/cursor.h"
#include "read/generators.h"
#include "read/open_calls.h"
#include "read/slice.h"
#include "read/stack_paths.h"
#include "read/timeline.h"

namespace whence::read {

struct ExceptionSeen {
  std::uint32_t thread;
  bool handled;  // else raised
  std::uint64_t time;
  std::uint64_t type;    // a string
  std::uint64_t code;    // of the innermost open frame; 0: none is known
  std::uint64_t offset;  // of the instruction, in bytes
  std::uint64_t task;    // 0: none
};

struct CallStep {
  enum class What { entered, left, folded };
  What what;
  Call call;  // of one that is entered, without what is known at its end
};

class CallReader {
 public:
  // All but the slice outlive it. What is open at the beginning of the slice begins there, and what
  // is open at its end is cut there.
  CallReader(const Source& source, const Names& names, const Timeline& timeline, Slice slice = {});

  // One of the three, to the end: what the one reads the others do not see again.
  [[nodiscard]] Next next(Call& call);      // as they end
  [[nodiscard]] Next next(CallStep& step);  // as they begin and end
  [[nodiscard]] Next next(ExceptionSeen& seen);

  // Exits with nothing to leave, as at the beginning of a ring.
  [[nodiscard]] std::uint64_t unmatched() const noexcept { return unmatched_; }
  // Calls, generators, threads and stacks for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const noexcept {
    return budget_.refused() + stacks_left_out_;
  }
  // At the end, if the deadline of the slice brought it about: all before this time was read, in
  // nanoseconds. What was open then is cut there, or where its thread was read to.
  [[nodiscard]] std::optional<std::int64_t> read_until() const noexcept {
    const auto ticks = cursor_.stopped_at();
    return ticks.has_value() ? std::optional(timeline_.at(*ticks)) : std::nullopt;
  }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // Work of a lowered program: a call that nobody saw begin, and those that were inlined around it.
  struct Work {
    std::uint64_t start, end;  // ticks
    std::uint64_t order;       // in which it was told, by one thread
    WorkPath path;
  };
  struct OpenWork {
    std::uint64_t end;
    std::size_t around;    // how many calls are open around it
    std::size_t place;     // of the innermost of its calls, and
    std::uint64_t number;  // its number
  };

  struct ThreadCalls {
    std::uint32_t id;
    OpenCalls open;
    std::uint64_t now = 0;
    // What metadata say of this thread, in the order of time: the next of each, and when.
    std::size_t next_off = 0, next_frames = 0, frames_end = 0;
    std::uint64_t next_fact = 0;
    const std::vector<Work>* work = nullptr;  // all of it, by its start; nullptr: there is none
    std::size_t next_work = 0;
    std::vector<OpenWork> working;
    bool begun = false, over = false;  // the slice
  };
  // Calls to be ended before anything else happens, one with each next(), and the frames that are
  // found open instead.
  struct Plan {
    ThreadCalls* thread = nullptr;  // nullptr: nothing is planned
    std::size_t keep = 0;
    Left left = Left::gone;
    std::vector<std::uint64_t> nodes;  // stacks, the deepest first
    const Work* work = nullptr;        // to be begun instead
    std::size_t entered = 0;           // of its calls
  };
  // Calls that are open where the slice begins, told one with each next().
  struct Telling {
    ThreadCalls* thread = nullptr;  // nullptr: nothing is to be told
    std::size_t next = 0;
  };
  enum class Got { entered, left, folded, exception, nothing, end, aborted };

  [[nodiscard, gnu::always_inline]] inline Got step(Call& call, ExceptionSeen& seen);
  [[nodiscard, gnu::always_inline]] inline bool read_usual(Call& call);
  [[nodiscard, gnu::always_inline]] inline Got read_on(Call& call, ExceptionSeen& seen);
  [[nodiscard]] ThreadCalls* thread(std::uint32_t id);
  [[nodiscard, gnu::always_inline]] inline Got take(ThreadCalls& thread, Call& call,
                                                    ExceptionSeen& seen);
  [[nodiscard]] Got enter(ThreadCalls& thread, Entered entered, Activation activation,
                          std::uint64_t generator, Call& call);
  [[nodiscard]] Got enter(ThreadCalls& thread, OpenCall open, Call& call);
  [[nodiscard]] Got leave(ThreadCalls& thread, Left left, Call& call);
  [[nodiscard]] Got leave_native(ThreadCalls& thread, Left left, Call& call);
  [[nodiscard]] Got fold(ThreadCalls& thread, Call& call);
  void see(ThreadCalls& thread, bool handled, ExceptionSeen& seen);
  void end_top(ThreadCalls& thread, Left left, Call& call);

  // calls_work.cpp
  [[nodiscard]] bool read_work();
  [[nodiscard]] bool apply_work(ThreadCalls& thread, std::uint64_t until);
  [[nodiscard]] std::uint64_t next_work(const ThreadCalls& thread) const noexcept;
  [[nodiscard]] Got begin_work(Call& call);
  // calls_facts.cpp
  void sort_facts();
  [[nodiscard]] bool apply_facts(ThreadCalls& thread, std::uint64_t until);
  void reconcile(ThreadCalls& thread, std::uint64_t stack);
  void name_generator(ThreadCalls& thread, std::uint64_t level, std::uint64_t number);
  [[nodiscard]] Got follow_plan(Call& call);
  [[nodiscard]] Got finish();
  // calls_slice.cpp
  // Before something at `time` is done: true if there was something to do first, at the beginning
  // or the end of the slice.
  [[nodiscard]] bool cross(ThreadCalls& thread, std::uint64_t time);
  void begin_slice(ThreadCalls& thread);
  [[nodiscard]] Got tell_open(Call& call);
  [[nodiscard]] std::uint64_t end_of(const ThreadCalls& thread) const noexcept;

  const Source& source_;
  const Names& names_;
  const Timeline& timeline_;
  Timeline::Stretch stretch_;  // of it
  Budget budget_;
  Budget work_sites_;         // how many calls there may be around work
  std::uint64_t steps_left_;  // along stacks
  Cursor cursor_;
  StackPaths paths_;
  Generators generators_;
  std::vector<std::uint64_t> offs_;        // by time
  std::vector<ThreadFramesEntry> frames_;  // by thread, then time
  IdMap<std::vector<Work>> work_;          // by thread
  bool work_read_ = false;
  IdMap<ThreadCalls> threads_;
  ThreadCalls* current_ = nullptr;
  std::uint64_t current_id_ = ~std::uint64_t{0};

  Slice slice_;
  std::uint64_t from_, to_;  // the slice in ticks
  bool entries_ = false;     // are asked for
  Telling telling_;
  Plan plan_;
  format::Record record_{};
  bool pending_ = false;  // `record_` is still to be taken
  bool all_read_ = false;
  std::uint64_t stop_ = kNever;       // ticks: the deadline came before what begins here
  std::vector<ThreadCalls*> ending_;  // the last first
  std::uint64_t unmatched_ = 0;
  std::uint64_t stacks_left_out_ = 0;
};

}  // namespace whence::read
