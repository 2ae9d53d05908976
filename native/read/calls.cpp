// calls.cpp: see calls.h. What metadata say about calls is in calls_facts.cpp.
#include "read/calls.h"

#include <algorithm>

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
constexpr std::uint64_t kStepsPerByte = 8;
constexpr std::size_t kThreadCost = 256;

}  // namespace

CallReader::CallReader(const Source& source, const Names& names)
    : source_(source),
      names_(names),
      budget_(kLeastBudget, source.input().size()),
      steps_left_(std::max(kLeastSteps, source.input().size() * kStepsPerByte)),
      cursor_(source, Select::events),
      paths_(names),
      generators_(names, budget_),
      offs_(names.calls_off()),
      frames_(names.thread_frames()) {
  sort_facts();
}

Next CallReader::next(Call& call) {
  ExceptionSeen seen;
  for (;;) {
    switch (step(call, seen)) {
      case Got::call: return Next::record;
      case Got::exception: break;
      case Got::end: return Next::end;
      case Got::aborted: return Next::aborted;
    }
  }
}

Next CallReader::next(ExceptionSeen& seen) {
  Call call;
  for (;;) {
    switch (step(call, seen)) {
      case Got::call: break;
      case Got::exception: return Next::record;
      case Got::end: return Next::end;
      case Got::aborted: return Next::aborted;
    }
  }
}

CallReader::Got CallReader::step(Call& call, ExceptionSeen& seen) {
  for (;;) {
    if (plan_.thread != nullptr && follow_plan(call)) return Got::call;
    if (!pending_) {
      if (all_read_) {
        if (finish(call)) return Got::call;
        if (plan_.thread != nullptr) continue;
        return Got::end;
      }
      const Next next = cursor_.next(record_);
      if (next == Next::aborted) return Got::aborted;
      if (next == Next::end) {
        all_read_ = true;
        for (auto& [id, thread] : threads_) ending_.push_back(&thread);
        std::sort(ending_.begin(), ending_.end(),
                  [](const auto* a, const auto* b) { return a->id > b->id; });
        continue;
      }
      // It is at the time of the next thread, and of the one before it says nothing.
      if (record_.code == format::Owner::kKind.code) continue;
      if (record_.thread != current_id_) {
        current_ = thread(record_.thread);
        current_id_ = record_.thread;
      }
      if (current_ == nullptr) continue;
      pending_ = true;
    }
    ThreadCalls& thread = *current_;
    const std::uint64_t time = std::max(record_.time, thread.now);
    if (time >= thread.next_fact && apply_facts(thread, time)) continue;
    thread.now = time;
    pending_ = false;
    switch (take(thread, call, seen)) {
      case Step::call: return Got::call;
      case Step::exception: return Got::exception;
      case Step::nothing: break;
    }
  }
}

CallReader::ThreadCalls* CallReader::thread(std::uint32_t id) {
  const auto found = threads_.find(id);
  if (found != threads_.end()) return &found->second;
  if (!budget_.afford(kThreadCost)) return nullptr;
  ThreadCalls& made = threads_[id];
  made.id = id;
  made.next_fact = offs_.empty() ? ~std::uint64_t{0} : offs_.front();
  return &made;
}

CallReader::Step CallReader::take(ThreadCalls& thread, Call& call, ExceptionSeen& seen) {
  const auto& v = record_.values;
  switch (record_.code) {
    case format::Call::kKind.code: enter(thread, Entered::call, {0, 0}, 0); break;
    case format::Open::kKind.code: enter(thread, Entered::open, {0, 0}, 0); break;
    case format::GeneratorCall::kKind.code:
      enter(thread, Entered::call, generators_.call(v[2], thread.now), v[2]);
      break;
    case format::Resume::kKind.code:
      enter(thread, Entered::resume, generators_.resume(v[2], thread.now), v[2]);
      break;
    case format::Throw::kKind.code:
      enter(thread, Entered::throw_, generators_.resume(v[2], thread.now), v[2]);
      break;
    case format::GeneratorOpen::kKind.code:
      enter(thread, Entered::open, generators_.resume(v[2], thread.now), v[2]);
      break;
    case format::CCall::kKind.code: enter_native(thread); break;
    case format::Return::kKind.code: return leave(thread, Left::return_, call);
    case format::Unwind::kKind.code: return leave(thread, Left::unwind, call);
    case format::Yield::kKind.code: return leave(thread, Left::yield, call);
    case format::Gone::kKind.code: return leave(thread, Left::gone, call);
    case format::Unstarted::kKind.code: return leave(thread, Left::unstarted, call);
    case format::CReturn::kKind.code: return leave_native(thread, Left::return_, call);
    case format::CRaise::kKind.code: return leave_native(thread, Left::unwind, call);
    case format::Folded::kKind.code: return fold(thread, call);
    case format::Frames::kKind.code: reconcile(thread, v[1]); break;
    case format::FrameGenerator::kKind.code: name_generator(thread, v[1], v[2]); break;
    case format::Raised::kKind.code: see(thread, false, seen); return Step::exception;
    case format::Handled::kKind.code: see(thread, true, seen); return Step::exception;
    default: break;
  }
  return Step::nothing;
}

void CallReader::enter(ThreadCalls& thread, Entered entered, Activation activation,
                       std::uint64_t generator) {
  thread.open.enter({thread.now, 0, record_.values[1], 0, generator, activation.instance,
                     activation.task, 0, entered, false},
                    budget_);
}

void CallReader::enter_native(ThreadCalls& thread) {
  thread.open.enter({thread.now, 0, record_.values[1], 0, 0, 0, 0, 0, Entered::call, true},
                    budget_);
}

CallReader::Step CallReader::leave(ThreadCalls& thread, Left left, Call& call) {
  OpenCalls& open = thread.open;
  if (open.beyond() != 0) {
    open.forget_one_beyond();
    return Step::nothing;
  }
  if (open.empty()) {
    ++unmatched_;
    return Step::nothing;
  }
  if (open.top().native) {  // what is open inside ends first, and then the frame
    plan_.thread = &thread;
    plan_.keep = open.frame_at(open.size() - 1);
    plan_.left = Left::gone;
    pending_ = true;
    return Step::nothing;
  }
  end_top(thread, left, call);
  return Step::call;
}

// Frames are matched by the tracer, functions written in C are not: an exit that comes while a
// frame is innermost is of one whose entry is missing, and the frame goes on.
CallReader::Step CallReader::leave_native(ThreadCalls& thread, Left left, Call& call) {
  OpenCalls& open = thread.open;
  if (open.beyond() != 0) {
    open.forget_one_beyond();
    return Step::nothing;
  }
  if (open.empty() || !open.top().native) {
    ++unmatched_;
    return Step::nothing;
  }
  end_top(thread, left, call);
  return Step::call;
}

void CallReader::end_top(ThreadCalls& thread, Left left, Call& call) {
  const OpenCall& top = thread.open.top();
  if (top.instance != 0) {
    const bool finished = left == Left::return_ || left == Left::unwind || left == Left::unstarted;
    generators_.leave(top.generator, top.instance, thread.now, finished);
  }
  thread.open.leave(thread.now, left, call);
  call.thread = thread.id;
}

CallReader::Step CallReader::fold(ThreadCalls& thread, Call& call) {
  const auto& v = record_.values;
  if (v[2] == 0 || thread.open.beyond() != 0) return Step::nothing;
  thread.open.fold(thread.now, v[1], v[2], v[3], call);
  call.thread = thread.id;
  return Step::call;
}

void CallReader::see(ThreadCalls& thread, bool handled, ExceptionSeen& seen) {
  OpenCalls& open = thread.open;
  seen = {thread.id, handled, thread.now, record_.values[1], 0, record_.values[2], 0};
  if (open.beyond() != 0 || open.frames() == 0) return;
  const OpenCall& frame = open[open.frame_at(open.size() - 1) - 1];
  seen.code = frame.what;
  seen.task = frame.task;
}

}  // namespace whence::read
