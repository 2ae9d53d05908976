// storm.cpp: a program full of awkward frames, captured from everywhere, by many threads.
//
//     storm CAPTURES SEED LIBRARY LIBRARY [PART]...
//
// Parts that are named are left out: edges, fibers, interrupts, libraries, stacks (of signals).
//
// Each capture follows the trail and walks from the same registers: both must find the same, frame
// for frame; now and then glibc's backtrace() is asked, too, where every frame has a table. Nothing
// may crash. It prints what it has met; a status other than 0 is a failure.
#include "storm/storm.h"

#include <execinfo.h>
#include <sys/time.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "unwind/walk.h"

using namespace whence;

namespace storm {
namespace {

constexpr int kThreads = 6;
constexpr int kDepth = 14;
std::set<std::string> left_out;

[[nodiscard]] bool has(const char* part) {
  return left_out.count(part) == 0;
}

void run_thread(std::uint64_t seed) {
  here.random = seed;
  prepare_thread();
  // The first time surely: a short storm may end before chance has led there.
  for (bool first = true; wanted.load(std::memory_order_relaxed) > 0; first = false) {
    onward(static_cast<int>(random(kDepth)));
    if (has("edges") && (random(400) == 0 || first)) capture_at_edge();
  }
  release_thread();
}

void interrupt_every(suseconds_t microseconds) {
  const itimerval every = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_PROF, &every, nullptr);
}

void print(const char* name, std::uint64_t count) {
  std::printf("%s: %" PRIu64 "\n", name, count);
}

void print_counts() {
  print("captures", counts.captures);
  print("frames", counts.frames);
  print("deepest", counts.deepest);
  print("interrupted", counts.interrupted);
  print("compared with glibc", counts.compared);
  print("ended early", counts.early);
  print("signals", counts.signals);
  print("fibers", counts.fibers);
  print("exceptions", counts.exceptions);
  print("edges", counts.edges);
  print("libraries", counts.loads);
  print("at the same place", counts.same_place);
  const auto& statistics = unwind::statistics();
  print("misses", statistics.misses);
  print("truncated", statistics.truncated);
  print("unsupported", statistics.unsupported);
}

}  // namespace

// Once more, from a random kind of frame; and then perhaps again.
void onward(int depth) {
  if (depth <= 0) return capture();
  const std::uint64_t kind = random(32);
  if (kind == 0) {
    static const bool fibers = has("fibers");
    through_places(depth, fibers);
  } else if (kind < 4) {
    through_assembly(depth);
  } else {
    through_compiled(depth);
  }
  if (random(4) == 0) capture();
}

}  // namespace storm

int main(int count, char** arguments) {
  if (count < 5) return 2;
  storm::wanted = std::atoll(arguments[1]);
  const auto seed = std::strtoull(arguments[2], nullptr, 10) * 2654435761u + 1;
  for (int i = 5; i < count; ++i) storm::left_out.insert(arguments[i]);
  if (!unwind::prepare()) return 1;
  void* none[1];
  backtrace(none, 1);  // loads libgcc_s, which must not happen in a handler of signals
  if (storm::has("edges")) storm::measure();
  const bool come_again = storm::places_come_again(arguments[3], arguments[4]);
  storm::prepare_pages();
  storm::prepare_signals(storm::has("stacks"));
  if (storm::has("interrupts")) storm::interrupt_every(1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < storm::kThreads; ++i) {
    threads.emplace_back(storm::run_thread, seed + static_cast<std::uint64_t>(i) * 7919);
  }
  std::atomic<bool> ends = false;
  std::thread changing;
  if (storm::has("libraries")) {
    changing = std::thread([&] {
      storm::here.random = seed + 1;
      storm::prepare_thread();
      storm::change_libraries(arguments[3], arguments[4], ends);
      storm::release_thread();
    });
  }
  for (auto& thread : threads) thread.join();
  ends = true;
  if (changing.joinable()) changing.join();
  storm::interrupt_every(0);
  storm::print_counts();
  storm::print("places come again", come_again);
  return 0;
}
