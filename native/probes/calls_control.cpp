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
#include "stacks/capture.h"

namespace whence::probes {
namespace {

// What the source of events calls.
struct Sink {
  using Frame = cpython::Frame;

  [[gnu::always_inline]] static bool entered(const Frame* frame, const Frame* caller,
                                             PyCodeObject* code, cpython::Entered how) {
    return probes::entered(frame, caller, code, how);
  }
  [[gnu::always_inline]] static bool left(const Frame* frame, const Frame* caller,
                                          PyCodeObject* code, cpython::Left how, PyObject* value) {
    return probes::left(frame, caller, code, how, value);
  }
  static CallThread& thread() noexcept { return detail::call_thread; }
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

CallsWanted now;               // guarded by the GIL
std::uint32_t last_epoch = 0;  // likewise
bool started = false;

template <class R>
void tell() noexcept {
  store::store().write_metadata(format::kLongestCompact,
                                [](std::uint8_t* out, format::Deltas& deltas) {
                                  return R::encode(out, deltas, base::ticks());
                                });
}

std::uint64_t ticks_in(std::uint64_t nanoseconds) noexcept {
  if (nanoseconds == 0) return 0;
  const double seconds = static_cast<double>(nanoseconds) / 1e9;
  return 1 + static_cast<std::uint64_t>(seconds * static_cast<double>(base::estimate_frequency()));
}

// The frames of all threads are told, and then events come: nothing of ours gives the GIL away in
// between.
const char* turn_on() noexcept {
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) return "off";
  CallOptions& options = detail::call_options;
  options.recording = recording;
  tell<format::CallsOn>();
  tell_frames_of_all(recording);
  if (++last_epoch == CallOptions::kOff) last_epoch = 1;
  options.shortest = ticks_in(now.min_duration);
  // Folding is the slow path's: no code is known to the fast one.
  options.mark = now.min_duration != 0 ? 1 : recorded_mark(recording);
  options.max_depth = now.max_depth != 0 ? now.max_depth : CallOptions::kOff;
  options.epoch = last_epoch;
  const char* reason = Source::install(now.events);
  if (reason != nullptr) pause_calls();
  return reason;
}

}  // namespace

const char* start_calls(CallsWanted wanted) noexcept {
  if (!stacks::frames_are_trusted()) return "unknown_layout";
  set_call_filter(std::move(wanted.filter));
  now = std::move(wanted);
  store::store().set_on_new_chunk(tell_frames);
  forget_tasks();
  detail::on_new_thread = Source::meet_thread;
  const char* reason = turn_on();
  started = reason == nullptr;
  return reason;
}

void pause_calls() noexcept {
  CallOptions& options = detail::call_options;
  if (options.epoch == CallOptions::kOff) return;
  CallThread& self = detail::call_thread;
  if (self.epoch == options.epoch) self.folding.flush(options.recording);
  options.epoch = CallOptions::kOff;
  options.mark = 1;
  tell<format::CallsOff>();
  Source::remove();
}

const char* resume_calls() noexcept {
  return started && detail::call_options.epoch == CallOptions::kOff ? turn_on() : nullptr;
}

void stop_calls() noexcept {
  pause_calls();
  started = false;
}

void forget_calls() noexcept {
  CallOptions& options = detail::call_options;
  const bool on = options.epoch != CallOptions::kOff;
  options.epoch = CallOptions::kOff;
  options.mark = 1;
  if (on) Source::remove();
  started = false;
}

}  // namespace whence::probes
