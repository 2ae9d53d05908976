// calls.cpp: see calls.h. What metadata say about calls is in calls_facts.cpp.
#include "read/calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "format/records/call.h"
#include "format/records/exception.h"
#include "format/records/frames.h"
#include "format/records/thread.h"

namespace whence::read {
namespace {

// Half a million open calls, with room to grow to that.
constexpr std::uint64_t kLeastBudget = 56u << 20;
// Each chunk says once which frames are open; those that have not changed since are not looked at.
constexpr std::uint64_t kLeastSteps = 1u << 20;
constexpr std::uint64_t kLeastSites = 4u << 20;
constexpr std::uint64_t kStepsPerByte = 8;
constexpr std::size_t kThreadCost = 256;

}  // namespace

CallReader::CallReader(const Source& source, const Names& names, const Timeline& timeline,
                       Slice slice)
    : source_(source),
      names_(names),
      timeline_(timeline),
      budget_(kLeastBudget, source.input().size()),
      work_sites_(kLeastSites, source.input().size()),
      steps_left_(std::max(kLeastSteps, source.input().size() * kStepsPerByte)),
      cursor_(source, Select::events, slice.deadline),
      paths_(names),
      generators_(names, budget_, source.shifts().generator),
      offs_(names.calls_off()),
      frames_(names.thread_frames()),
      slice_(std::move(slice)),
      from_(timeline.ticks_at(slice_.from)),
      to_(timeline.ticks_at(slice_.to)) {
  sort_facts();
}

CallReader::ThreadCalls* CallReader::thread(std::uint32_t id) {
  const auto found = threads_.find(id);
  if (found != threads_.end()) return &found->second;
  if (!slice_.has_thread(id)) return nullptr;
  if (!budget_.afford(kThreadCost)) return nullptr;
  ThreadCalls& made = threads_[id];
  made.id = id;
  made.next_fact = offs_.empty() ? ~std::uint64_t{0} : offs_.front();
  made.begun = from_ == 0;
  const auto work = work_.find(id);
  if (work != work_.end()) {
    made.work = &work->second;
    made.next_fact = std::min(made.next_fact, made.work->front().start);
  }
  return &made;
}

CallReader::Got CallReader::take(ThreadCalls& thread, Call& call, ExceptionSeen& seen) {
  const auto& v = record_.values;
  switch (record_.code) {
    case format::Call::kKind.code: return enter(thread, Entered::call, {0, 0}, 0, call);
    case format::Open::kKind.code: return enter(thread, Entered::open, {0, 0}, 0, call);
    case format::GeneratorCall::kKind.code:
      return enter(thread, Entered::call, generators_.call(v[2], thread.now), v[2], call);
    case format::Resume::kKind.code:
      return enter(thread, Entered::resume, generators_.resume(v[2], thread.now), v[2], call);
    case format::Throw::kKind.code:
      return enter(thread, Entered::throw_, generators_.resume(v[2], thread.now), v[2], call);
    case format::GeneratorOpen::kKind.code:
      return enter(thread, Entered::open, generators_.resume(v[2], thread.now), v[2], call);
    case format::CCall::kKind.code:
      return enter(thread, {0, 0, v[1], 0, 0, 0, 0, 0, Entered::call, true, false}, call);
    case format::Return::kKind.code: return leave(thread, Left::return_, call);
    case format::Unwind::kKind.code: return leave(thread, Left::unwind, call);
    case format::Yield::kKind.code: return leave(thread, Left::yield, call);
    case format::Gone::kKind.code: return leave(thread, Left::gone, call);
    case format::Unstarted::kKind.code: return leave(thread, Left::unstarted, call);
    case format::CReturn::kKind.code: return leave_native(thread, Left::return_, call);
    case format::CRaise::kKind.code: return leave_native(thread, Left::unwind, call);
    case format::Folded::kKind.code: return fold(thread, call);
    case format::Frames::kKind.code: reconcile(thread, v[1]); return Got::nothing;
    case format::FrameGenerator::kKind.code:
      name_generator(thread, v[1], v[2]);
      return Got::nothing;
    case format::Raised::kKind.code: see(thread, false, seen); break;
    case format::Handled::kKind.code: see(thread, true, seen); break;
    default: return Got::nothing;
  }
  return thread.begun ? Got::exception : Got::nothing;
}

CallReader::Got CallReader::enter(ThreadCalls& thread, Entered entered, Activation activation,
                                  std::uint64_t generator, Call& call) {
  return enter(thread,
               {0, 0, record_.values[1], 0, generator, activation.instance, activation.task, 0,
                entered, false, false},
               call);
}

CallReader::Got CallReader::enter(ThreadCalls& thread, OpenCall open, Call& call) {
  open.start = timeline_.at(thread.now, stretch_);
  if (!thread.open.enter(open, budget_) || !entries_ || !thread.begun) return Got::nothing;
  thread.open.describe(thread.open.size() - 1, call);
  call.thread = thread.id;
  return Got::entered;
}

CallReader::Got CallReader::leave(ThreadCalls& thread, Left left, Call& call) {
  OpenCalls& open = thread.open;
  if (open.beyond() != 0) {
    open.forget_one_beyond();
    return Got::nothing;
  }
  if (open.empty()) {
    ++unmatched_;
    return Got::nothing;
  }
  if (open.top().native) {  // what is open inside ends first, and then the frame
    plan_.thread = &thread;
    plan_.keep = open.frame_at(open.size() - 1);
    plan_.left = Left::gone;
    pending_ = true;
    return Got::nothing;
  }
  end_top(thread, left, call);
  return thread.begun ? Got::left : Got::nothing;
}

// Frames are matched by the tracer, functions written in C are not: an exit that comes while a
// frame is innermost is of one whose entry is missing, and the frame goes on.
CallReader::Got CallReader::leave_native(ThreadCalls& thread, Left left, Call& call) {
  OpenCalls& open = thread.open;
  if (open.beyond() != 0) {
    open.forget_one_beyond();
    return Got::nothing;
  }
  std::size_t keep = open.size();
  for (; keep != 0 && open[keep - 1].work && steps_left_ != 0; --steps_left_) --keep;
  if (keep == 0 || !open[keep - 1].native || open[keep - 1].work) {
    ++unmatched_;
    return Got::nothing;
  }
  if (keep != open.size()) {  // work that should have ended, and then the function
    plan_.thread = &thread;
    plan_.keep = keep;
    plan_.left = Left::gone;
    pending_ = true;
    return Got::nothing;
  }
  end_top(thread, left, call);
  return thread.begun ? Got::left : Got::nothing;
}

void CallReader::end_top(ThreadCalls& thread, Left left, Call& call) {
  const OpenCall& top = thread.open.top();
  if (top.instance != 0) {
    const bool finished = left == Left::return_ || left == Left::unwind || left == Left::unstarted;
    generators_.leave(top.generator, top.instance, thread.now, finished);
  }
  thread.open.leave(std::min(timeline_.at(thread.now, stretch_), slice_.to), left, call);
  call.thread = thread.id;
}

CallReader::Got CallReader::fold(ThreadCalls& thread, Call& call) {
  const auto& v = record_.values;
  if (v[2] == 0 || thread.open.beyond() != 0) return Got::nothing;
  const std::int64_t now = timeline_.at(thread.now, stretch_);
  const std::int64_t most = span_of(slice_.from, now);
  const std::int64_t duration = std::min(timeline_.lasted(thread.now, v[3]), most);
  thread.open.fold(now, v[1], v[2], duration, call);
  call.thread = thread.id;
  return thread.begun ? Got::folded : Got::nothing;
}

void CallReader::see(ThreadCalls& thread, bool handled, ExceptionSeen& seen) {
  OpenCalls& open = thread.open;
  seen = {thread.id, handled, thread.now, record_.values[1], 0, record_.values[2], 0};
  if (open.beyond() != 0 || open.frames() == 0) return;
  const OpenCall& frame = open[open.frame_at(open.size() - 1) - 1];
  seen.code = frame.what;
  seen.task = frame.task;
}

CallReader::Got CallReader::read_on(Call& call, ExceptionSeen& seen) {
  if (!work_read_ && !read_work()) return Got::aborted;
  if (!pending_) {
    const Next next = cursor_.next(record_);
    if (next == Next::aborted) return Got::aborted;
    if (next == Next::end) {
      all_read_ = true;
      stop_ = cursor_.stopped_at().value_or(kNever);
      for (auto& [id, thread] : threads_) ending_.push_back(&thread);
      std::sort(ending_.begin(), ending_.end(),
                [](const auto* a, const auto* b) { return a->id > b->id; });
      return Got::nothing;
    }
    // It is at the time of the next thread, and of the one before it says nothing.
    if (record_.code == format::Owner::kKind.code) return Got::nothing;
    if (record_.thread != current_id_) {
      current_ = thread(record_.thread);
      current_id_ = record_.thread;
    }
    if (current_ == nullptr) return Got::nothing;
    pending_ = true;
  }
  ThreadCalls& thread = *current_;
  const std::uint64_t time = std::max(record_.time, thread.now);
  if ((!thread.begun || time >= to_) && cross(thread, time)) return Got::nothing;
  if (time >= thread.next_fact && apply_facts(thread, time)) return Got::nothing;
  thread.now = time;
  pending_ = false;
  return take(thread, call, seen);
}

// Nearly all records are of frames that are entered and left while nothing else is due. Those are
// taken here as far as a call that has ended; false: the next record goes the long way round.
bool CallReader::read_usual(Call& call) {
  format::Decoder* const decoder = cursor_.decoder();
  if (pending_ || plan_.thread != nullptr || current_ == nullptr || !current_->begun ||
      decoder == nullptr || decoder->thread() != current_id_) {
    return false;
  }
  ThreadCalls& thread = *current_;
  const std::uint64_t until = std::min(to_, thread.next_fact);
  for (;;) {
    const std::uint8_t kind = decoder->peek();
    if (kind == format::Call::kKind.code) {
      std::array<std::uint64_t, 2> v;
      const std::uint8_t* const end = decoder->glance(v);
      const std::uint64_t now = std::max(v[0], thread.now);
      if (end == nullptr || now >= until || !thread.open.has_room()) return false;
      decoder->pass(end, v[0]);
      thread.now = now;
      thread.open.enter_frame(timeline_.at(now, stretch_), v[1]);
    } else if (kind == format::Return::kKind.code) {
      std::array<std::uint64_t, 1> v;
      const std::uint8_t* const end = decoder->glance(v);
      const std::uint64_t now = std::max(v[0], thread.now);
      if (end == nullptr || now >= until || !thread.open.has_plain_frame()) return false;
      decoder->pass(end, v[0]);
      thread.now = now;
      thread.open.leave(std::min(timeline_.at(now, stretch_), slice_.to), Left::return_, call);
      call.thread = thread.id;
      return true;
    } else {
      return false;
    }
  }
}

// One thing at a time: what is planned, then the next record, at last what is still open.
CallReader::Got CallReader::step(Call& call, ExceptionSeen& seen) {
  if (telling_.thread != nullptr) return tell_open(call);
  if (plan_.thread != nullptr) return follow_plan(call);
  if (!pending_ && all_read_) return finish();
  return read_on(call, seen);
}

Next CallReader::next(Call& call) {
  ExceptionSeen seen;
  for (;;) {
    if (read_usual(call)) [[likely]]
      return Next::record;
    switch (step(call, seen)) {
      case Got::left:
      case Got::folded: return Next::record;
      case Got::end: return Next::end;
      case Got::aborted: return Next::aborted;
      default: break;
    }
  }
}

Next CallReader::next(CallStep& told) {
  ExceptionSeen seen;
  entries_ = true;
  for (;;) {
    switch (step(told.call, seen)) {
      case Got::entered: told.what = CallStep::What::entered; return Next::record;
      case Got::left: told.what = CallStep::What::left; return Next::record;
      case Got::folded: told.what = CallStep::What::folded; return Next::record;
      case Got::end: return Next::end;
      case Got::aborted: return Next::aborted;
      default: break;
    }
  }
}

Next CallReader::next(ExceptionSeen& seen) {
  Call call;
  for (;;) {
    switch (step(call, seen)) {
      case Got::exception: return Next::record;
      case Got::end: return Next::end;
      case Got::aborted: return Next::aborted;
      default: break;
    }
  }
}

}  // namespace whence::read
