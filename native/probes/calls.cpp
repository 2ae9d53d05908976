// calls.cpp: the slow path of calls.h: threads, code and frames that are met for the first time,
// and frames that have come or gone unseen.
#include "probes/calls.h"

#include "cpython/thread.h"
#include "format/records/frames.h"
#include "probes/call_frames.h"
#include "probes/write_stack.h"
#include "stacks/intern.h"

namespace whence::probes {

using cpython::Entered;
using cpython::Frame;
using cpython::Left;

namespace detail {
constinit thread_local CallThread call_thread;
CallOptions call_options;
void (*on_new_thread)(PyThreadState*) noexcept = nullptr;
}  // namespace detail

namespace {

constexpr std::size_t kNear = 64;  // frames that are looked through before all are

std::uint32_t recording() noexcept {
  return CallOptions::get(detail::call_options.recording);
}

// One record, in a new chunk if there is no room in this one.
struct WriteAlways {
  template <class R, class... Values>
  bool operator()(Values... values) const noexcept {
    return store::write<R>(recording(), values...) != 0;
  }
};
constexpr WriteAlways write_always;

template <class R, class... Values>
void write(Values... values) noexcept {
  write_always.operator()<R>(values...);
}

// Gives a thread's memory back when it ends. Whatever runs later on it is not recorded.
struct ThreadOwner {
  ~ThreadOwner() {
    CallThread& self = detail::call_thread;
    self.ended = true;
    self.epoch = 0;
    self.open.release();
    self.stack.release();
  }
};

bool meet_thread(CallThread& self) noexcept {
  if (self.ended) return false;
  if (self.met) return true;
  thread_local ThreadOwner owner;
  static_cast<void>(&owner);
  self.stack.prepare();  // once: later the thread may be on another stack than its own
  return self.met = self.open.make_room(1);
}

// Depth counts from the frames that were open when the recording met the thread.
bool is_deep(const CallThread& self) noexcept {
  const std::uint32_t most = CallOptions::get(detail::call_options.max_depth);
  return most != CallOptions::kOff && self.open.depth() >= self.standing + most;
}

std::uint64_t shortest() noexcept {
  return detail::call_options.shortest.load(std::memory_order_relaxed);
}

// Takes frames off that are gone, down to that depth.
void cut_down(CallThread& self, std::size_t depth) noexcept {
  if (self.open.depth() > depth) self.folding.flush(recording());
  while (self.open.depth() > depth) {
    if ((self.open.top().frame & kSilent) == 0) write<format::Gone>();
    self.open.pop();
  }
}

// How frames that nobody has told of are opened.
enum class Opening { told, silently, by_throw };

void push_open(CallThread& self, const FoundFrame& found, Opening how) noexcept {
  const bool silent = is_deep(self);
  self.folding.flush(recording());
  if (how != Opening::silently && !silent) {
    if (found.generator) {
      write<format::GeneratorOpen>(found.code, found.address >> 4);
    } else {
      write<format::Open>(found.code);
    }
  }
  // An exception is thrown into a generator through those that delegate to it. They are on the
  // chain while it runs, and off it again whatever comes of that.
  const bool delegating = how == Opening::by_throw && found.generator;
  self.open.push(found.address | (silent ? kSilent : 0) | (delegating ? kDelegating : 0),
                 found.code);
}

// Where is that frame among the open ones? 0: not among the innermost.
std::size_t find_near(CallThread& self, const Frame* frame) noexcept {
  const std::size_t depth = self.open.depth();
  for (std::size_t i = 0; i < kNear && i < depth; ++i) {
    if ((self.open.at(depth - i).frame & ~kTags) == address_of(frame)) return depth - i;
  }
  return 0;
}

// Makes the open frames those of the chain that begins with `frame`. What has come and gone is
// written unless that is to be done silently. False for lack of memory: then they stay as they are.
bool reconcile(CallThread& self, const Frame* frame, Opening how) noexcept {
  FoundFrames chain;
  if (!find_recorded(chain, frame, recording()) || !self.open.make_room(chain.size() + 1)) {
    return false;
  }
  const std::size_t depth = chain.size();
  const auto from_outermost = [&](std::size_t i) { return chain[depth - 1 - i]; };
  std::size_t same = 0;
  while (same < depth && same < self.open.depth()) {
    const OpenFrame& open = self.open.at(same + 1);
    const FoundFrame found = from_outermost(same);
    if ((open.frame & ~kTags) != found.address || open.code != found.code) break;
    ++same;
  }
  cut_down(self, same);
  for (std::size_t i = same; i < depth; ++i) push_open(self, from_outermost(i), how);
  return true;
}

// The thread's frames are known from here on, and told.
bool adopt(CallThread& self, const Frame* frame) noexcept {
  if (!meet_thread(self)) return false;
  self.standing = SIZE_MAX / 2;
  self.open.clear();
  self.folding.forget();
  if (detail::on_new_thread != nullptr) detail::on_new_thread(cpython::calling_state());
  if (!reconcile(self, frame, Opening::silently)) return false;
  self.standing = self.open.depth();
  const std::uint32_t most = CallOptions::get(detail::call_options.max_depth);
  self.open.watch_from(most == CallOptions::kOff ? SIZE_MAX : self.standing + most);
  self.epoch = CallOptions::get(detail::call_options.epoch);
  tell_frames(recording());
  return true;
}

// Makes `frame` the innermost open one.
bool make_innermost(CallThread& self, const Frame* frame, Opening how) noexcept {
  if (self.epoch != CallOptions::get(detail::call_options.epoch)) return adopt(self, frame);
  const Frame* visible = nearest_recorded(frame, recording());
  if (visible == nullptr) {
    cut_down(self, 0);
    return true;
  }
  if (const std::size_t level = find_near(self, visible)) {
    cut_down(self, level);
    return true;
  }
  return reconcile(self, visible, how);
}

// Makes `frame`, which is about to be left, the innermost open one, whether it was known or not.
bool reopen(CallThread& self, const Frame* frame, const Frame* caller,
            stacks::CodeId code) noexcept {
  const bool known = self.epoch == CallOptions::get(detail::call_options.epoch);
  if (const std::size_t level = known ? find_near(self, frame) : 0) {
    cut_down(self, level);
    return true;
  }
  // Some sources tell while the frame is still there, others when it is gone.
  const bool is_there = cpython::innermost(cpython::calling_state()) == frame;
  if (!make_innermost(self, is_there ? frame : caller, Opening::told)) return false;
  const std::size_t depth = self.open.depth();
  if (find_near(self, frame) == depth && depth != 0) return true;
  if (!self.open.make_room(depth + 1)) return false;
  push_open(self, {address_of(frame), code, cpython::is_generator(frame)}, Opening::told);
  return true;
}

void begin_call(CallThread& self, const Frame* frame, stacks::CodeId code, Entered how) noexcept {
  const bool may_fold = shortest() != 0 && how == Entered::call && !cpython::is_generator(frame);
  if (self.folding.holds() || !may_fold) self.folding.flush(recording());
  if (may_fold) {
    self.folding.hold(code);
  } else {
    write_entered(code, frame, cpython::is_generator(frame), how, write_always);
  }
}

void end_call(CallThread& self, Left how) noexcept {
  if (self.folding.holds() && how == Left::returned && self.folding.fold(recording(), shortest())) {
    return;
  }
  self.folding.flush(recording());
  write_left(how, write_always);
}

}  // namespace

bool entered(const Frame* frame, const Frame* caller, PyCodeObject* code, Entered how) noexcept {
  if (detail::entered_fast<detail::Surely>(frame, caller, code, how)) return true;
  CallThread& self = detail::call_thread;
  if (CallOptions::get(detail::call_options.epoch) == CallOptions::kOff || self.ended) return true;
  const stacks::CodeEntry* entry = decided_entry(code, recording());
  if (begins_task(frame, caller, code, cpython::is_generator(frame), how)) {
    coroutine_begins(recording(), frame, caller);
  }
  if (!is_recorded(entry, recording())) return meet_thread(self), makes_tasks(entry);
  const Opening opening = how == Entered::thrown ? Opening::by_throw : Opening::told;
  if (!make_innermost(self, caller, opening)) return true;
  if (!self.open.make_room(self.open.depth() + 1)) return true;
  std::uintptr_t tags = is_deep(self) ? kSilent : 0;
  if (makes_tasks(entry)) tags |= kWatched;
  if (how == Entered::thrown && (self.open.top().frame & kDelegating) != 0) tags |= kWatched;
  if (shortest() != 0) tags |= kWatched;
  if ((tags & kSilent) == 0) begin_call(self, frame, id_of(entry), how);
  self.open.push(address_of(frame) | tags, id_of(entry));
  return true;
}

bool left(const Frame* frame, const Frame* caller, PyCodeObject* code, Left how,
          PyObject* value) noexcept {
  if (detail::left_fast<detail::Surely>(frame, caller, code, how, value)) return true;
  CallThread& self = detail::call_thread;
  if (CallOptions::get(detail::call_options.epoch) == CallOptions::kOff || self.ended) return true;
  const stacks::CodeEntry* entry = decided_entry(code, recording());
  if (makes_tasks(entry) && how == Left::returned) maybe_made(recording(), value);
  if (awaits_task(caller, code, how, value)) maybe_awaits(recording(), frame, value);
  if (!is_recorded(entry, recording())) return makes_tasks(entry);
  if (!reopen(self, frame, caller, id_of(entry))) return true;
  if ((self.open.top().frame & kSilent) == 0) end_call(self, how);
  self.open.pop();
  while ((self.open.top().frame & kDelegating) != 0) cut_down(self, self.open.depth() - 1);
  return true;
}

namespace {

// One whose call is held back is not told.
std::size_t told_depth(CallThread& self) noexcept {
  return self.open.depth() - (self.folding.holds() ? 1 : 0);
}

// The open frames as a stack; false if there is no room for it.
bool stack_of_open(CallThread& self, std::uint32_t wanted, stacks::StackId& stack) noexcept {
  for (std::size_t level = 1; level <= told_depth(self); ++level) {
    OpenFrame& open = self.open.at(level);
    if ((open.frame & kSilent) != 0) break;
    if (open.stack == stacks::kEmpty) open.stack = stacks::intern_frame(stack, open.code, -1);
    if (stacks::is_truncated(open.stack)) return false;
    write_stack_node(wanted, open.stack);
    stack = open.stack;
  }
  return true;
}

// Which of them belong to generators and the like.
void tell_generators(CallThread& self, std::uint32_t wanted) noexcept {
  for (std::size_t level = 1; level <= told_depth(self); ++level) {
    const OpenFrame& open = self.open.at(level);
    if ((open.frame & kSilent) != 0) break;
    if (open.code == stacks::kNoCode || !stacks::store().codes.entry(open.code).suspends) continue;
    store::write<format::FrameGenerator>(wanted, level, (open.frame & ~kTags) >> 4);
  }
}

}  // namespace

// By code alone: an open frame cannot be asked where it is, since it may be gone.
void tell_frames(std::uint32_t wanted) noexcept {
  CallThread& self = detail::call_thread;
  if (self.greeting || wanted != recording() || self.epoch == 0 ||
      self.epoch != CallOptions::get(detail::call_options.epoch)) {
    return;
  }
  self.greeting = true;
  stacks::StackId stack = stacks::kEmpty;
  if (stack_of_open(self, wanted, stack)) {
    store::write<format::Frames>(wanted, stack);
    tell_generators(self, wanted);
  }
  self.greeting = false;
}

}  // namespace whence::probes
