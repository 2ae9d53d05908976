// calls_work.cpp: see calls.h. Work of a lowered program as calls, under the source it came from.
//
// It is told of after it has ended, and other calls may have been made inside it. So all of it is
// read first; then it begins and ends among the calls of its thread, as metadata that have a time.
// Calls nest, and work may say what does not:
//
//      call that ends after work has begun, and before it ends     the work begins when it ends
//      call that begins inside work and ends after it              the work ends when it ends
//      work that begins inside other work and ends after that      begins when that ends
#include <algorithm>
#include <limits>
#include <tuple>

#include "base/clock.h"
#include "format/records/call.h"
#include "format/records/handle.h"
#include "read/calls.h"

namespace whence::read {
namespace {

constexpr std::size_t kWorkCost = 64;

constexpr bool is_exit(std::uint8_t code) noexcept {
  switch (code) {
    case format::Return::kKind.code:
    case format::Unwind::kKind.code:
    case format::Yield::kKind.code:
    case format::Gone::kKind.code:
    case format::Unstarted::kKind.code:
    case format::CReturn::kKind.code:
    case format::CRaise::kKind.code: return true;
    default: return false;
  }
}

// The time that is so many nanoseconds before, at least `least`: that of the beginning.
std::uint64_t ticks_before(const Timeline& timeline, std::uint64_t ticks, std::uint64_t ago,
                           std::uint64_t least) {
  if (ticks <= least) return ticks;
  std::int64_t then;
  const bool is_before_all =
      ago > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
      __builtin_sub_overflow(timeline.at(ticks), static_cast<std::int64_t>(ago), &then);
  if (is_before_all || then <= timeline.at(least)) return least;
  return std::min(timeline.ticks_at(then), ticks);
}

}  // namespace

// False: unpacking asked to stop.
bool CallReader::read_work() {
  work_read_ = true;
  if (!names_.has_work()) return true;
  const std::uint64_t begin = source_.header().start_ticks;
  // It has a part of the time that there is, and calls are read as far as their work is known.
  std::uint64_t deadline = slice_.deadline;
  if (deadline != kNoDeadline) {
    const std::uint64_t now = base::nanoseconds(CLOCK_MONOTONIC);
    deadline = std::min(deadline, now + (deadline - std::min(now, deadline)) / 3);
  }
  Cursor cursor(source_, Select::events, deadline);
  format::Record record;
  Next next;
  while ((next = cursor.next(record)) == Next::record) {
    if (record.code != format::HandleEvent::kKind.code || !slice_.has_thread(record.thread) ||
        !budget_.afford(kWorkCost)) {
      continue;
    }
    WorkPath path = names_.path_of(record);
    if (!work_sites_.afford(path.sites.size())) path.sites = {};
    const std::uint64_t end = ticks_before(timeline_, record.time, record.values[4], begin);
    const std::uint64_t start = ticks_before(timeline_, end, record.values[5], begin);
    std::vector<Work>& all = work_[record.thread];
    all.push_back({start, end, all.size(), path});
  }
  if (cursor.stopped_at().has_value()) cursor_.stop_at(*cursor.stopped_at());
  for (auto& [id, work] : work_) {
    std::sort(work.begin(), work.end(), [](const Work& a, const Work& b) {
      return std::tuple(a.start, ~a.end, a.order) < std::tuple(b.start, ~b.end, b.order);
    });
    if (ThreadCalls* known = thread(static_cast<std::uint32_t>(id));
        known != nullptr && known->work == nullptr) {
      known->work = &work;
      known->next_fact = std::min(known->next_fact, work.front().start);
    }
  }
  return next == Next::end;
}

// What is to be done before a record at `until` can be taken; false: nothing.
bool CallReader::apply_work(ThreadCalls& thread, std::uint64_t until) {
  OpenCalls& open = thread.open;
  std::vector<OpenWork>& working = thread.working;
  // Whatever is around work may have ended, and the work with it.
  const auto is_open = [&](const OpenWork& work) {
    return work.place < open.size() && open[work.place].number == work.number;
  };
  while (!working.empty() && !is_open(working.back())) working.pop_back();
  const bool has_next = thread.next_work != thread.work->size() && open.beyond() == 0;
  const Work* const next = has_next ? &(*thread.work)[thread.next_work] : nullptr;
  const auto is_inside = [&](const OpenWork& around) {
    return next != nullptr && next->start < around.end && next->end <= around.end;
  };
  if (!working.empty() && working.back().end <= until && !is_inside(working.back()) &&
      open.top().number == working.back().number) {
    thread.now = std::max(thread.now, working.back().end);
    plan_.thread = &thread;
    plan_.keep = working.back().around;
    plan_.left = Left::return_;
    working.pop_back();
    return true;
  }
  if (next == nullptr || next->start > until) return false;
  if (!working.empty() && working.back().end < next->end) return false;
  // A call that ends before the work does ends first.
  if (pending_ && is_exit(record_.code) && next->end > std::max(record_.time, thread.now)) {
    return false;
  }
  ++thread.next_work;
  thread.now = std::max(thread.now, next->start);
  plan_.thread = &thread;
  plan_.work = next;
  plan_.entered = 0;
  return true;
}

std::uint64_t CallReader::next_work(const ThreadCalls& thread) const noexcept {
  const std::size_t next = thread.next_work;
  const std::uint64_t start = next < thread.work->size() ? (*thread.work)[next].start : kNever;
  return std::min(start, thread.working.empty() ? kNever : thread.working.back().end);
}

// One of the calls of the work that is planned.
CallReader::Got CallReader::begin_work(Call& call) {
  ThreadCalls& thread = *plan_.thread;
  const Work& work = *plan_.work;
  const auto& [sites, last] = work.path;
  if (plan_.entered <= sites.size()) {
    const std::uint64_t code = plan_.entered < sites.size() ? sites[plan_.entered] : last;
    ++plan_.entered;
    const Got got = enter(thread, {0, 0, code, 0, 0, 0, 0, 0, Entered::call, true, true}, call);
    if (thread.open.beyond() == 0) return got;
    thread.open.forget_all_beyond();  // there is no room for more of them
    plan_.entered -= 1;
  }
  const std::size_t around = thread.open.size() - std::min(plan_.entered, thread.open.size());
  if (around != thread.open.size()) {
    thread.working.push_back({work.end, around, thread.open.size() - 1, thread.open.top().number});
  }
  plan_.thread = nullptr;
  plan_.work = nullptr;
  return Got::nothing;
}

}  // namespace whence::read
