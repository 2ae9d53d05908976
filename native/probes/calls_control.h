// calls_control.h: recording of calls, turned on and off.
//
// Threads: holders of the GIL. Allocates: at first sight of code; CPython does, to instrument it.
// Fails by: a reason, and calls are not recorded.
//
//      off --start--> on --pause--> paused --resume--> on ... --stop--> off
//
// Each stretch of `on` is an epoch of its own: threads tell their frames anew in it.
#pragma once

#include <cstdint>

#include "cpython/call_events.h"
#include "probes/call_codes.h"

namespace whence::probes {

struct CallsWanted {
  CallFilter filter;
  cpython::CallEvents events;
  std::uint32_t max_depth = 0;     // 0: no bound
  std::uint64_t min_duration = 0;  // nanoseconds; shorter calls are folded
};

// nullptr, or why not. `tasks` is a list of those that there are.
[[nodiscard]] const char* start_calls(CallsWanted wanted, PyObject* tasks) noexcept;
void pause_calls() noexcept;
[[nodiscard]] const char* resume_calls(PyObject* tasks) noexcept;
// Does not matter whether they are on. nullptr, or why calls are missing.
const char* stop_calls() noexcept;
// Does somebody else evaluate frames, in the place where calls would be seen?
[[nodiscard]] bool calls_have_company() noexcept;

// In a forked child.
void forget_calls() noexcept;

}  // namespace whence::probes
