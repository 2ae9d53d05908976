// open_calls.cpp: see open_calls.h.
#include "read/open_calls.h"

#include <algorithm>
#include <limits>

namespace whence::read {
namespace {

constexpr std::size_t kFirstRoom = 16;
constexpr std::size_t kMostOpen = 16u << 20;
constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();

void add_inside(OpenCall& around, std::int64_t duration) noexcept {
  around.inside += std::min(duration, kLongest - around.inside);
}

}  // namespace

std::int64_t span_of(std::int64_t start, std::int64_t end) noexcept {
  const std::uint64_t span = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(start);
  return end > start ? static_cast<std::int64_t>(std::min<std::uint64_t>(span, kLongest)) : 0;
}

bool OpenCalls::grow(Budget& budget) {
  const std::size_t before = calls_.capacity();
  const std::size_t wanted = std::max(kFirstRoom, 2 * before);
  if (wanted > kMostOpen || !budget.afford(wanted * sizeof(OpenCall))) return false;
  calls_.reserve(wanted);  // both are there while calls move from the one to the other
  budget.give_back(before * sizeof(OpenCall));
  return true;
}

void OpenCalls::describe(std::size_t i, Call& call) const noexcept {
  const OpenCall& open = calls_[i];
  call.depth = static_cast<std::uint32_t>(i);
  call.entered = open.entered;
  call.native = open.native;
  call.code = open.native ? 0 : open.what;
  call.name = open.native ? open.what : 0;
  call.start = open.start;
  call.generator = open.instance;
  call.task = open.task;
  call.number = open.number;
  call.parent = i != 0 ? calls_[i - 1].number : 0;
  call.count = 1;
}

void OpenCalls::begin_at(std::int64_t time) noexcept {
  for (OpenCall& open : calls_) {
    open.start = std::max(open.start, time);
    open.inside = 0;
  }
}

void OpenCalls::leave(std::int64_t time, Left left, Call& call) noexcept {
  describe(calls_.size() - 1, call);
  const OpenCall& open = calls_.back();
  call.left = left;
  call.duration = span_of(open.start, time);
  call.own = call.duration - std::min(open.inside, call.duration);
  frames_ -= !open.native;
  calls_.pop_back();
  if (!calls_.empty()) add_inside(calls_.back(), call.duration);
}

void OpenCalls::fold(std::int64_t time, std::uint64_t code, std::uint64_t count,
                     std::int64_t duration, Call& call) noexcept {
  call = {};
  call.depth = static_cast<std::uint32_t>(calls_.size());
  call.entered = Entered::call;
  call.left = Left::return_;
  call.code = code;
  if (!calls_.empty()) {
    OpenCall& around = calls_.back();
    const std::int64_t so_far = span_of(around.start, time);
    duration = std::min(duration, so_far - std::min(around.inside, so_far));
    add_inside(around, duration);
    call.task = around.task;
    call.parent = around.number;
  }
  call.own = call.duration = duration;
  call.start = time - duration;
  call.number = ++numbers_;
  call.count = count;
}

}  // namespace whence::read
