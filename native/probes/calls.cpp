// calls.cpp: the slow path of calls.h: threads, code and frames that are met for the first time,
// and frames that have come or gone unseen.
#include "probes/calls.h"

#include <cstring>

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
}  // namespace detail

namespace {

constexpr std::size_t kNear = 64;  // frames that are looked through before all are

std::uint32_t recording() noexcept {
  return CallOptions::get(detail::call_options.recording);
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
  if (self.epoch != 0) return true;
  thread_local ThreadOwner owner;
  static_cast<void>(&owner);
  self.stack.prepare();
  return self.open.make_room(1);
}

bool is_deep(const CallThread& self) noexcept {
  return self.open.depth() >= CallOptions::get(detail::call_options.max_depth);
}

// Takes frames off that are gone, down to that depth.
void cut_down(CallThread& self, std::size_t depth) noexcept {
  while (self.open.depth() > depth) {
    if ((self.open.top().frame & kSilent) == 0) write_exit<format::Gone>(recording());
    self.open.pop();
  }
}

void push_open(CallThread& self, const FoundFrame& found, bool tell) noexcept {
  const bool silent = is_deep(self);
  if (tell && !silent) {
    if (found.generator) {
      write_entry<format::GeneratorOpen>(recording(), found.code, found.address >> 4);
    } else {
      write_entry<format::Open>(recording(), found.code);
    }
  }
  self.open.push(found.address | (silent ? kSilent : 0), found.code);
}

// Where is that frame among the open ones? 0: not among the innermost.
std::size_t find_near(CallThread& self, const Frame* frame) noexcept {
  const std::size_t depth = self.open.depth();
  for (std::size_t i = 0; i < kNear && i < depth; ++i) {
    if ((self.open.at(depth - i).frame & ~kSilent) == address_of(frame)) return depth - i;
  }
  return 0;
}

// Makes the open frames those of the chain that begins with `frame`. With `tell`, what has come and
// gone is written; else it is up to the caller. False for lack of memory: then they stay as they
// are.
bool reconcile(CallThread& self, const Frame* frame, bool tell) noexcept {
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
    if ((open.frame & ~kSilent) != found.address || open.code != found.code) break;
    ++same;
  }
  if (tell) {
    cut_down(self, same);
  } else {
    while (self.open.depth() > same) self.open.pop();
  }
  for (std::size_t i = same; i < depth; ++i) push_open(self, from_outermost(i), tell);
  return true;
}

// The thread's frames are known from here on, and told.
bool adopt(CallThread& self, const Frame* frame) noexcept {
  if (!meet_thread(self)) return false;
  self.open.watch_from(CallOptions::get(detail::call_options.max_depth));
  self.open.clear();
  if (!reconcile(self, frame, false)) return false;
  self.epoch = CallOptions::get(detail::call_options.epoch);
  tell_frames(recording());
  return true;
}

// Makes `frame` the innermost open one.
bool make_innermost(CallThread& self, const Frame* frame) noexcept {
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
  return reconcile(self, visible, true);
}

}  // namespace

bool detail::entered_slowly(const Frame* frame, const Frame* caller, PyCodeObject* code,
                            Entered how) noexcept {
  CallThread& self = call_thread;
  if (CallOptions::get(call_options.epoch) == CallOptions::kOff || self.ended) return true;
  const stacks::CodeEntry* entry = decided_entry(code, recording());
  if (!is_recorded(entry, recording())) return meet_thread(self), false;
  if (!make_innermost(self, caller) || !self.open.make_room(self.open.depth() + 1)) return true;
  const stacks::CodeId id = id_of(entry);
  const bool silent = is_deep(self);
  if (!silent) write_entered(recording(), id, frame, how);
  self.open.push(address_of(frame) | (silent ? kSilent : 0), id);
  return true;
}

bool detail::left_slowly(const Frame* frame, const Frame* caller, PyCodeObject* code,
                         Left how) noexcept {
  CallThread& self = call_thread;
  if (CallOptions::get(call_options.epoch) == CallOptions::kOff || self.ended) return true;
  const stacks::CodeEntry* entry = decided_entry(code, recording());
  if (!is_recorded(entry, recording())) return false;
  const bool known =
      self.epoch == CallOptions::get(call_options.epoch) && find_near(self, frame) != 0;
  if (known) {
    cut_down(self, find_near(self, frame));
  } else {
    if (!make_innermost(self, caller) || !self.open.make_room(self.open.depth() + 1)) return true;
    if ((self.open.top().frame & ~kSilent) != address_of(frame)) {
      push_open(self, {address_of(frame), id_of(entry), cpython::is_generator(frame)}, true);
    }
  }
  if ((self.open.top().frame & kSilent) == 0) write_left(recording(), how);
  self.open.pop();
  return true;
}

// By code alone: an open frame cannot be asked where it is, since it may be gone.
void tell_frames(std::uint32_t wanted) noexcept {
  CallThread& self = detail::call_thread;
  if (self.greeting || wanted != recording() || self.epoch == 0 ||
      self.epoch != CallOptions::get(detail::call_options.epoch)) {
    return;
  }
  self.greeting = true;
  stacks::StackId stack = stacks::kEmpty;
  for (std::size_t level = 1; level <= self.open.depth(); ++level) {
    OpenFrame& open = self.open.at(level);
    if ((open.frame & kSilent) != 0) break;
    if (open.stack == stacks::kEmpty) {
      open.stack = stacks::intern_frame(stack, open.code, -1);
      if (stacks::is_truncated(open.stack)) break;
    }
    write_stack_node(wanted, open.stack);
    stack = open.stack;
  }
  store::write<format::Frames>(wanted, [&](store::Cursor& cursor, std::uint64_t now) {
    return format::Frames::encode(cursor.next(), cursor.deltas, now, stack);
  });
  self.greeting = false;
}

}  // namespace whence::probes
