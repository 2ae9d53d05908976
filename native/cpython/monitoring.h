// monitoring.h: call events of CPython 3.12 and later, from sys.monitoring.
//
// Threads: install() and remove() under the GIL; callbacks on the thread that runs the frame.
// Allocates: CPython does, when it instruments code. Fails by: a reason, nothing installed.
//
// CPython calls what is registered through the vectorcall protocol. Ours are objects of a type of
// our own that has nothing but that: no check of arguments, no recursion count.
#pragma once

#include <Python.h>

#include "cpython/call_events.h"
#include "cpython/frames.h"
#include "cpython/state_slot.h"

namespace whence::cpython {

enum class MonitoredEvent : std::uint8_t {
  start,
  resume,
  thrown,
  returned,
  yielded,
  unwound,
  call,
  c_return,
  c_raise,
  raise,
  handled,
  count
};

using Vectorcall = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

// Takes a tool id. nullptr, or why not.
[[nodiscard]] const char* prepare_monitoring() noexcept;
// Registers the callbacks that are not nullptr and turns their events on. nullptr, or why not. If
// runs already, its events are changed.
[[nodiscard]] const char* start_monitoring(const Vectorcall (&callbacks)[11]) noexcept;
// Turns the events off and gives the tool id back.
void stop_monitoring() noexcept;
// Where a handler begins, from the offset of the instruction that tells of it, which has no line.
[[nodiscard]] std::int64_t handler_offset(PyCodeObject* code, std::int64_t offset) noexcept;
// sys.monitoring.DISABLE, to be returned by a callback.
[[nodiscard]] PyObject* disable() noexcept;

template <class Sink>
class Monitoring {
 public:
  // Before anything is written: nullptr, or why calls cannot be recorded.
  static const char* prepare() noexcept { return prepare_monitoring(); }
  static const char* install(CallEvents events) noexcept {
    Vectorcall callbacks[] = {start,   resume,  thrown,  returned, yielded, unwound,
                              nullptr, nullptr, nullptr, nullptr,  nullptr};
    if (events.c_calls) {
      callbacks[6] = call;
      callbacks[7] = c_return;
      callbacks[8] = c_raise;
    }
    if (events.exceptions) {
      callbacks[9] = raise;
      callbacks[10] = handled;
    }
    return start_monitoring(callbacks);
  }
  static bool is_gone() noexcept { return false; }
  static bool has_company() noexcept { return false; }  // each tool has an id of its own
  static void remove() noexcept { stop_monitoring(); }
  static void meet_thread(PyThreadState*) noexcept {}

 private:
  using Args = PyObject* const*;

  // The fast paths end with a call, if they call anything: so they save no registers for it.
  [[gnu::always_inline]] static PyObject* enter(Args args, Entered how) {
    PyThreadState* const* slot = detail::state_slot;
    if (slot == nullptr) [[unlikely]]
      return enter_slowly(args, how);
    const Frame* frame = innermost(*slot);
    auto* code = reinterpret_cast<PyCodeObject*>(args[0]);
    if (!Sink::entered_quickly(frame, previous(frame), code, how)) [[unlikely]]
      return enter_slowly(args, how);
    return none();
  }
  [[gnu::always_inline]] static PyObject* leave(Args args, Left how, PyObject* value) {
    PyThreadState* const* slot = detail::state_slot;
    if (slot == nullptr) [[unlikely]]
      return leave_slowly(args, how, value);
    const Frame* frame = innermost(*slot);
    auto* code = reinterpret_cast<PyCodeObject*>(args[0]);
    if (!Sink::left_quickly(frame, previous(frame), code, how, value)) [[unlikely]]
      return leave_slowly(args, how, value);
    return none();
  }
  [[gnu::noinline]] static PyObject* enter_slowly(Args args, Entered how) {
    const Frame* frame = innermost(calling_state_quickly());
    auto* code = reinterpret_cast<PyCodeObject*>(args[0]);
    const bool recorded = Sink::entered(frame, previous(frame), code, how);
    return recorded || how == Entered::thrown ? none() : disable();
  }
  [[gnu::noinline]] static PyObject* leave_slowly(Args args, Left how, PyObject* value) {
    const Frame* frame = innermost(calling_state_quickly());
    auto* code = reinterpret_cast<PyCodeObject*>(args[0]);
    const bool recorded = Sink::left(frame, previous(frame), code, how, value);
    return recorded || how == Left::unwound ? none() : disable();
  }
  // It is immortal, so nobody counts who refers to it.
  [[gnu::always_inline]] static PyObject* none() noexcept { return Py_None; }

  static PyObject* start(PyObject*, Args args, std::size_t, PyObject*) {
    return enter(args, Entered::call);
  }
  static PyObject* resume(PyObject*, Args args, std::size_t, PyObject*) {
    return enter(args, Entered::resume);
  }
  static PyObject* thrown(PyObject*, Args args, std::size_t, PyObject*) {
    return enter(args, Entered::thrown);
  }
  static PyObject* returned(PyObject*, Args args, std::size_t, PyObject*) {
    return leave(args, Left::returned, args[2]);
  }
  static PyObject* yielded(PyObject*, Args args, std::size_t, PyObject*) {
    return leave(args, Left::yielded, args[2]);
  }
  static PyObject* unwound(PyObject*, Args args, std::size_t, PyObject*) {
    return leave(args, Left::unwound, nullptr);
  }

  static PyObject* call(PyObject*, Args args, std::size_t, PyObject*) {
    const Frame* frame = innermost(calling_state_quickly());
    Sink::c_called(frame, args[2]);
    return none();
  }
  static PyObject* c_return(PyObject*, Args args, std::size_t, PyObject*) {
    Sink::c_left(innermost(calling_state_quickly()), args[2], false);
    return none();
  }
  static PyObject* c_raise(PyObject*, Args args, std::size_t, PyObject*) {
    Sink::c_left(innermost(calling_state_quickly()), args[2], true);
    return none();
  }
  static PyObject* raise(PyObject*, Args args, std::size_t, PyObject*) {
    PyObject* traceback = reinterpret_cast<PyBaseExceptionObject*>(args[2])->traceback;
    Sink::raised(innermost(calling_state_quickly()), args[2], traceback,
                 PyLong_AsLongLong(args[1]));
    return none();
  }
  static PyObject* handled(PyObject*, Args args, std::size_t, PyObject*) {
    auto* code = reinterpret_cast<PyCodeObject*>(args[0]);
    Sink::handled(innermost(calling_state_quickly()), args[2],
                  handler_offset(code, PyLong_AsLongLong(args[1])));
    return none();
  }
};

}  // namespace whence::cpython
