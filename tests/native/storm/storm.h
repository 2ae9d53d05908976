// storm.h: what the parts of the storm share. See ../storm.cpp.
//
// A stack is built of awkward frames, chosen at random, one inside the other: each part has
// functions that take how many more there may be, and call onward() with one less.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unwind/trail.h"

namespace storm {

struct Counts {
  std::atomic<std::uint64_t> captures, interrupted, compared, early, frames, deepest;
  std::atomic<std::uint64_t> signals, fibers, exceptions, edges, loads, same_place;
};
extern Counts counts;
extern std::atomic<std::int64_t> wanted;  // captures that are still to be made

// What a thread knows of its own stack.
struct Here {
  std::uint64_t random = 1;
  int unlisted = 0;    // frames without a table: glibc goes no further than the first
  int unprovable = 0;  // of them, those that nobody can leave
  int handlers = 0;    // of signals, one in the other
  int throwing = 0;    // functions that throw
  whence::unwind::Trail trail;
  whence::unwind::Trail interrupted;  // for a signal that comes at any time
};
extern thread_local Here here;

[[nodiscard]] inline std::uint64_t random(std::uint64_t below) noexcept {
  std::uint64_t x = here.random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  here.random = x;
  return (x >> 11) % below;
}

// Counts frames of a kind while they are there.
class Passing {
 public:
  explicit Passing(int& count) noexcept : count_(count) { ++count_; }
  ~Passing() { --count_; }
  Passing(const Passing&) = delete;
  Passing& operator=(const Passing&) = delete;

 private:
  int& count_;
};

// What it calls knows nothing of it, and it does something after the call, so that it has a frame.
using Call = void (*)(int);

// check.cpp: the frames of whoever calls this are walked, and the results compared.
void capture() noexcept;
void capture_interrupted() noexcept;

// storm.cpp
void onward(int depth);

// frames.cpp: what compilers make
void through_compiled(int depth);
// assembly.cpp: code without tables
void through_assembly(int depth);
void prepare_pages();
// places.cpp: other stacks, and signals
void through_places(int depth, bool fibers);
void prepare_signals(bool stacks);
void prepare_thread();
void release_thread();
// edges.cpp: stacks that are nearly used up
void measure();
void capture_at_edge();
// libraries.cpp: libraries that come and go. Does one take the place of another that has gone?
bool places_come_again(const char* first, const char* second);
void change_libraries(const char* first, const char* second, const std::atomic<bool>& ends);

// Says why, with the frames that were found, and ends the process.
[[noreturn]] void fail(const char* what) noexcept;

}  // namespace storm
