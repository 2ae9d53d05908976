// open_calls.cpp: see open_calls.h.
#include "read/open_calls.h"

#include <algorithm>

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

void OpenCalls::begin_at(std::int64_t time) noexcept {
  for (OpenCall& open : calls_) {
    open.start = std::max(open.start, time);
    open.inside = 0;
  }
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
