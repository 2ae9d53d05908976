// open_calls.cpp: see open_calls.h.
#include "read/open_calls.h"

#include <algorithm>

#include "read/problems.h"

namespace whence::read {
namespace {

constexpr std::size_t kFirstRoom = 16;
constexpr std::size_t kMostOpen = 16u << 20;

}  // namespace

bool OpenCalls::grow(Budget& budget) {
  const std::size_t before = calls_.capacity();
  const std::size_t wanted = std::max(kFirstRoom, 2 * before);
  if (wanted > kMostOpen || !budget.afford(wanted * sizeof(OpenCall))) return false;
  calls_.reserve(wanted);  // both are there while calls move from the one to the other
  budget.give_back(before * sizeof(OpenCall));
  return true;
}

void OpenCalls::leave(std::uint64_t time, Left left, Call& call) noexcept {
  const OpenCall& open = calls_.back();
  const std::uint64_t duration = time - open.start;
  call.depth = static_cast<std::uint32_t>(calls_.size() - 1);
  call.entered = open.entered;
  call.left = left;
  call.native = open.native;
  call.code = open.native ? 0 : open.what;
  call.name = open.native ? open.what : 0;
  call.start_ticks = open.start;
  call.end_ticks = time;
  call.own_ticks = duration - std::min(open.inside, duration);
  call.generator = open.instance;
  call.task = open.task;
  call.number = open.number;
  call.parent = 0;
  call.count = 1;
  frames_ -= !open.native;
  calls_.pop_back();
  if (calls_.empty()) return;
  std::uint64_t& inside = calls_.back().inside;
  inside = add_counts(inside, duration);
  call.parent = calls_.back().number;
}

void OpenCalls::fold(std::uint64_t time, std::uint64_t code, std::uint64_t count,
                     std::uint64_t duration, Call& call) noexcept {
  call = {};
  call.depth = static_cast<std::uint32_t>(calls_.size());
  call.entered = Entered::call;
  call.left = Left::return_;
  call.code = code;
  std::uint64_t most = time;
  if (!calls_.empty()) {
    OpenCall& around = calls_.back();
    most = time - around.start;
    around.inside = add_counts(around.inside, std::min(duration, most));
    call.task = around.task;
    call.parent = around.number;
  }
  call.own_ticks = std::min(duration, most);
  call.start_ticks = time - call.own_ticks;
  call.end_ticks = time;
  call.number = ++numbers_;
  call.count = count;
}

}  // namespace whence::read
