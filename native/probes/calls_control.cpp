// calls_control.cpp: see calls_control.h.
#include "probes/calls_control.h"

#include <utility>

#include "base/clock.h"
#include "cpython/call_source.h"
#include "format/records/frames.h"
#include "probes/c_calls.h"
#include "probes/call_frames.h"
#include "probes/calls.h"
#include "probes/exceptions.h"
#include "probes/thread_tags.h"
#include "stacks/capture.h"

namespace whence::probes {
namespace {

// What the source of events calls.
struct Sink {
  using Frame = cpython::Frame;

  [[gnu::always_inline]] static bool entered_quickly(const Frame* frame, const Frame* caller,
                                                     PyCodeObject* code, cpython::Entered how) {
    return probes::entered_quickly(frame, caller, code, how);
  }
  static bool entered(const Frame* frame, const Frame* caller, PyCodeObject* code,
                      cpython::Entered how) {
    return probes::entered(frame, caller, code, how);
  }
  [[gnu::always_inline]] static bool left_quickly(const Frame* frame, const Frame* caller,
                                                  PyCodeObject* code, cpython::Left how,
                                                  PyObject* value) {
    return probes::left_quickly(frame, caller, code, how, value);
  }
  static bool left(const Frame* frame, const Frame* caller, PyCodeObject* code, cpython::Left how,
                   PyObject* value) {
    return probes::left(frame, caller, code, how, value);
  }
  static CallThread& thread() noexcept { return detail::call_thread; }
  static bool has_met(PyCodeObject* code) noexcept {
    return stacks::CodeRegistry::known_entry(code) != nullptr;
  }
  [[maybe_unused]] static void look_away() noexcept;  // not every source asks for it
  [[maybe_unused]] static void look_again() noexcept;
  static void c_called(const Frame* frame, PyObject* callable) noexcept {
    if (is_c_function(callable)) probes::c_called(frame, callable);
  }
  static void c_left(const Frame* frame, PyObject* callable, bool by_exception) noexcept {
    if (is_c_function(callable)) probes::c_left(frame, by_exception);
  }
  static void raised(const Frame* frame, PyObject* exception, PyObject* traceback,
                     std::int64_t offset) noexcept {
    exception_seen(frame, exception, traceback, offset);
  }
  static void handled(const Frame* frame, PyObject* exception, std::int64_t offset) noexcept {
    exception_handled(frame, exception, offset);
  }
};

using Source = cpython::CallSource<Sink>;

// All guarded by the GIL.
CallsWanted now;
std::uint32_t last_epoch = 0;
bool started = false;
bool paused = false;
bool lost = false;               // events, since somebody has taken the source out
std::uint32_t looking_away = 0;  // how many threads have asked for that

bool is_on() noexcept {
  return detail::call_options.epoch != CallOptions::kOff;
}

// The frames of all threads are told, and then events come: nothing of ours gives the GIL away in
// between.
const char* turn_on() noexcept {
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) return "off";
  if (const char* reason = Source::prepare()) return reason;
  CallOptions& options = detail::call_options;
  options.recording = recording;
  store::write_fact<format::CallsOn>();
  tell_frames_of_all(recording);
  if (++last_epoch == CallOptions::kOff) last_epoch = 1;
  options.shortest = base::ticks_in(now.min_duration);
  // Folding is the slow path's: no code is known to the fast one.
  options.mark = now.min_duration != 0 ? 1 : recorded_mark(recording);
  options.max_depth = now.max_depth != 0 ? now.max_depth : CallOptions::kOff;
  options.epoch = last_epoch;
  return Source::install(now.events);
}

void turn_off() noexcept {
  CallOptions& options = detail::call_options;
  CallThread& self = detail::call_thread;
  if (self.epoch == options.epoch) self.folding.flush(options.recording);
  options.epoch = CallOptions::kOff;
  options.mark = 1;
  store::write_fact<format::CallsOff>();
  Source::remove();
}

// Makes it so: on if it is started, and neither paused nor looking away.
const char* settle() noexcept {
  const bool wanted = started && !paused && looking_away == 0;
  const char* reason = nullptr;
  if (wanted && !is_on()) reason = turn_on();
  if (is_on() && (!wanted || reason != nullptr)) turn_off();
  return reason;
}

// Not where the C stack is low: it may run Python code to find out.
void notice_loss() noexcept {
  if (is_on() && Source::is_gone()) lost = true;
}

// Before the frames are told, so that it can be said whose they are.
void meet_all(PyObject* tasks) noexcept {
  const std::uint32_t recording = store::store().generation();
  for (Py_ssize_t i = 0; recording != 0 && i < PyList_GET_SIZE(tasks); ++i) {
    found(recording, PyList_GET_ITEM(tasks, i));
  }
}

void Sink::look_away() noexcept {
  ++looking_away;
  settle();
}

void Sink::look_again() noexcept {
  --looking_away;
  settle();
}

}  // namespace

const char* start_calls(CallsWanted wanted, PyObject* tasks) noexcept {
  if (!stacks::frames_are_trusted()) return "unknown_layout";
  set_call_filter(std::move(wanted.filter));
  now = std::move(wanted);
  store::store().set_on_new_chunk(begin_chunk);
  forget_tasks();
  detail::on_new_thread = Source::meet_thread;
  started = true;
  paused = lost = false;
  meet_all(tasks);
  const char* reason = settle();
  started = reason == nullptr;
  return reason;
}

void pause_calls() noexcept {
  notice_loss();
  paused = true;
  settle();
}

const char* resume_calls(PyObject* tasks) noexcept {
  paused = false;
  if (started) meet_all(tasks);
  return settle();
}

const char* stop_calls() noexcept {
  notice_loss();
  started = false;
  settle();
  return lost ? "hook_replaced" : nullptr;
}

// Only this thread is left, and the recording is the parent's.
bool calls_have_company() noexcept {
  return Source::has_company();
}

void forget_calls() noexcept {
  started = false;
  looking_away = 0;
  settle();
}

}  // namespace whence::probes
