// tasks.h: tasks of asyncio, met when they are made or first run, so that what a coroutine does can
// be told to be a task's.
//
// Threads: holders of the GIL. Allocates: for each task that is alive at one time, and by calling
// functions of asyncio that are written in C. Runs no Python code: names and coroutines are taken
// from where asyncio keeps them. Fails by: a task that is not known. Nothing is raised.
//
// A task is known by its coroutine. So no switch needs to be noticed: whoever enters the coroutine
// of a task, of whichever kind, runs that task until the coroutine is left.
#pragma once

#include <Python.h>

#include <cstdint>

#include "cpython/frames.h"

namespace whence::probes {

// At the start of a recording of calls. If asyncio is not imported yet, it is found later.
void forget_tasks() noexcept;

// A coroutine begins, and no coroutine awaits it: perhaps it is a task's.
void coroutine_begins(std::uint32_t recording, const cpython::Frame* frame,
                      const cpython::Frame* caller) noexcept;
// A function returns something that may be a new task.
void maybe_made(std::uint32_t recording, PyObject* value) noexcept;
// A coroutine yields a future that may be a task, or a gathering of tasks.
void maybe_awaits(std::uint32_t recording, const cpython::Frame* frame, PyObject* value) noexcept;

// Is it worth a call of maybe_awaits()?
namespace detail {
extern PyTypeObject* awaited_types[3];
}
[[nodiscard, gnu::always_inline]] inline bool may_be_awaited(PyObject* value) noexcept {
  const PyTypeObject* type = Py_TYPE(value);
  return type == detail::awaited_types[0] || type == detail::awaited_types[1] ||
         type == detail::awaited_types[2];
}

}  // namespace whence::probes
