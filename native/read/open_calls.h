// open_calls.h: the calls that one thread has open, outermost first.
//
// Threads: a list belongs to one. Allocates: 64 bytes a call, within a budget.
// Fails by: enter(), which then only counts; std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "read/budget.h"

namespace whence::read {

enum class Entered : std::uint8_t { call, resume, throw_, open };
enum class Left : std::uint8_t {
  return_,
  unwind,  // by an exception
  yield,
  gone,       // nobody saw how
  unstarted,  // by an exception, before it ran
  cut,        // it was open when recording calls ended
};

// One activation of a function: from its entry to its exit.
struct Call {
  std::uint32_t thread;
  std::uint32_t depth;  // how many calls are open around it
  Entered entered;
  Left left;
  bool native;                   // a function written in C
  std::uint64_t code;            // 0: a function written in C
  std::uint64_t name;            // a string, of a function written in C
  std::int64_t start, duration;  // nanoseconds
  std::int64_t own;              // without the calls directly inside
  std::uint64_t generator;       // the instance; 0: none
  std::uint64_t task;            // 0: none
  std::uint64_t number;          // from 1, in the order in which the calls of a thread began
  std::uint64_t parent;          // the number of the call around it; 0: none
  std::uint64_t count;           // more than 1: so many calls of the same function, folded together
};

struct OpenCall {
  std::int64_t start;   // nanoseconds
  std::int64_t inside;  // of the calls directly inside, so far
  std::uint64_t what;   // a code, or the name of a function written in C
  std::uint64_t number;
  std::uint64_t generator, instance;
  std::uint64_t task;
  // Of a frame: a stack with the same codes, from the outermost frame to this; 0: not known. Of
  // what is none: how many calls there are up to the innermost frame around it.
  std::uint32_t node;
  Entered entered;
  bool native;  // no frame: a function written in C, or
  bool work;    // work of a lowered program, which has a code
};
static_assert(sizeof(OpenCall) == 64);

// Times come from files that may lie: what is longer than can be said is cut.
inline constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();

[[nodiscard]] inline std::int64_t span_of(std::int64_t start, std::int64_t end) noexcept {
  const std::uint64_t span = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(start);
  return end > start ? static_cast<std::int64_t>(std::min<std::uint64_t>(span, kLongest)) : 0;
}

inline void add_inside(OpenCall& around, std::int64_t duration) noexcept {
  around.inside += std::min(duration, kLongest - around.inside);
}

class OpenCalls {
 public:
  [[nodiscard]] bool empty() const noexcept { return calls_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  // How many of them are written in Python.
  [[nodiscard]] std::size_t frames() const noexcept { return frames_; }
  [[nodiscard]] OpenCall& operator[](std::size_t i) noexcept { return calls_[i]; }
  [[nodiscard]] OpenCall& top() noexcept { return calls_.back(); }
  // How many calls there are up to the innermost frame that is this one or around it; 0: none.
  [[nodiscard]] std::size_t frame_at(std::size_t i) const noexcept {
    return calls_[i].native ? calls_[i].node : i + 1;
  }
  // How many calls inside the innermost one found no room.
  [[nodiscard]] std::uint64_t beyond() const noexcept { return beyond_; }

  // The number, and the task unless it has its own, are filled in. False: there is no room for it.
  bool enter(OpenCall call, Budget& budget) {
    call.number = ++numbers_;
    if (beyond_ != 0 || (calls_.size() == calls_.capacity() && !grow(budget))) {
      ++beyond_;
      return false;
    }
    if (!calls_.empty()) {
      if (call.task == 0) call.task = calls_.back().task;
      if (call.native) call.node = static_cast<std::uint32_t>(frame_at(calls_.size() - 1));
    }
    frames_ += !call.native;
    calls_.push_back(call);
    return true;
  }

  // For what is entered most often, a frame that is no generator's.
  [[nodiscard]] bool has_room() const noexcept {
    return beyond_ == 0 && calls_.size() != calls_.capacity();
  }
  void enter_frame(std::int64_t start, std::uint64_t code) {
    const std::uint64_t task = calls_.empty() ? 0 : calls_.back().task;
    calls_.push_back({start, 0, code, ++numbers_, 0, 0, task, 0, Entered::call, false, false});
    ++frames_;
  }
  [[nodiscard]] bool has_plain_frame() const noexcept {
    return beyond_ == 0 && !calls_.empty() && !calls_.back().native && calls_.back().instance == 0;
  }

  // What is known of an open call: all but how it ends.
  void describe(std::size_t i, Call& call) const noexcept;
  // Forgets what was before this time.
  void begin_at(std::int64_t time) noexcept;

  // Ends the innermost one.
  void leave(std::int64_t time, Left left, Call& call) noexcept;
  // Calls without an entry and an exit of their own, which ended now.
  void fold(std::int64_t time, std::uint64_t code, std::uint64_t count, std::int64_t duration,
            Call& call) noexcept;
  // One that found no room has ended.
  void forget_one_beyond() noexcept { --beyond_; }
  void forget_all_beyond() noexcept { beyond_ = 0; }

 private:
  [[nodiscard]] bool grow(Budget& budget);

  std::vector<OpenCall> calls_;
  std::size_t frames_ = 0;
  std::uint64_t numbers_ = 0;
  std::uint64_t beyond_ = 0;
};

inline void OpenCalls::describe(std::size_t i, Call& call) const noexcept {
  const OpenCall& open = calls_[i];
  call.depth = static_cast<std::uint32_t>(i);
  call.entered = open.entered;
  call.native = open.native && !open.work;
  call.code = call.native ? 0 : open.what;
  call.name = call.native ? open.what : 0;
  call.start = open.start;
  call.generator = open.instance;
  call.task = open.task;
  call.number = open.number;
  call.parent = i != 0 ? calls_[i - 1].number : 0;
  call.count = 1;
}

inline void OpenCalls::leave(std::int64_t time, Left left, Call& call) noexcept {
  describe(calls_.size() - 1, call);
  const OpenCall& open = calls_.back();
  call.left = left;
  call.duration = span_of(open.start, time);
  call.own = call.duration - std::min(open.inside, call.duration);
  frames_ -= !open.native;
  calls_.pop_back();
  if (!calls_.empty()) add_inside(calls_.back(), call.duration);
}

}  // namespace whence::read
