// eval_hook.h: call events of CPython 3.11, from a frame evaluation function (PEP 523).
//
// Threads: install() and remove() under the GIL; evaluate() on the thread that runs the frame.
// Allocates: further C stack. Fails by: a reason, nothing installed.
//
// CPython calls evaluate() for each frame, in the place of its own interpreter loop, which it then
// calls. So a call of Python by Python uses C stack, which it does not otherwise: where that runs
// low, evaluation goes on elsewhere (base/more_stack.h).
//
// Others may have such a function too. One that was there first is called by ours; if one came
// later, ours stays under it as a mere link when it is removed. A frame that comes to us twice has
// gone round in a circle of links, and goes straight to the interpreter.
#pragma once

#include <Python.h>

#include "cpython/call_events.h"
#include "cpython/frames.h"
#include "cpython/thread.h"
#include "cpython/trace_hooks.h"

namespace whence::cpython {

using EvalFunction = _PyFrameEvalFunction;

// What a frame's fields say of how it is entered or was left.
[[nodiscard]] inline const PyGenObject* generator_of(const Frame* frame) noexcept {
  return reinterpret_cast<const PyGenObject*>(reinterpret_cast<const char*>(frame) -
                                              kLayout.generator_frame);
}
[[nodiscard]] inline bool is_suspended(const Frame* frame) noexcept {
  constexpr int kSuspended = -1;
  return is_generator(frame) && generator_of(frame)->gi_frame_state == kSuspended;
}

namespace detail {
extern EvalFunction next_evaluation;  // whom ours calls; guarded by the GIL
// `has_met`: has the sink heard of this code?
const char* put_evaluation_in(EvalFunction ours, bool (*has_met)(PyCodeObject*)) noexcept;
[[nodiscard]] bool greenlets_are_used() noexcept;
void take_evaluation_out(EvalFunction ours) noexcept;
// Has somebody taken ours out, by putting back what was there before theirs?
[[nodiscard]] bool evaluation_is_gone(EvalFunction ours, bool (*has_met)(PyCodeObject*)) noexcept;
}  // namespace detail

template <class Sink>
class EvalHook {
 public:
  static const char* prepare() noexcept { return nullptr; }
  static const char* install(CallEvents events) noexcept {
    wanted_ = events;
    hook_all_threads(events.c_calls ? profile : nullptr, events.exceptions ? trace : nullptr);
    return detail::put_evaluation_in(evaluate, Sink::has_met);
  }
  // While events are wanted: do none come any more?
  static bool is_gone() noexcept { return detail::evaluation_is_gone(evaluate, Sink::has_met); }
  // Does somebody else evaluate frames?
  static bool has_company() noexcept {
    const EvalFunction there = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Main());
    return there != _PyEval_EvalFrameDefault && there != evaluate;
  }
  static void remove() noexcept {
    detail::take_evaluation_out(evaluate);
    unhook_all_threads(profile, trace);
    wanted_ = {};
  }
  // On a thread that is met for the first time.
  static void meet_thread(PyThreadState* state) noexcept {
    hook_thread(state, wanted_.c_calls ? profile : nullptr, wanted_.exceptions ? trace : nullptr);
  }

 private:
  struct Call {
    PyThreadState* state;
    _PyInterpreterFrame* frame;
    int throwing;
  };

  static PyObject* evaluate(PyThreadState* state, _PyInterpreterFrame* raw, int throwing) {
    const auto* frame = reinterpret_cast<const Frame*>(raw);
    auto& thread = Sink::thread();
    if (thread.passing == frame) [[unlikely]]
      return _PyEval_EvalFrameDefault(state, raw, throwing);
    PyCodeObject* code = code_of(executable(frame));
    const bool generator = is_generator(frame);
    constexpr int kSuspends = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    // A call that only makes a generator is no run of it.
    const bool makes_generator = !generator && (code->co_flags & kSuspends) != 0;
    const std::uintptr_t first = instruction(frame);
    bool recorded = false;
    if (!makes_generator) [[likely]] {
      const Entered how = throwing != 0                   ? Entered::thrown
                          : generator && has_begun(frame) ? Entered::resume
                                                          : Entered::call;
      recorded = Sink::entered_quickly(frame, innermost(state), code, how) ||
                 Sink::entered(frame, innermost(state), code, how);
    }
    PyObject* result;
    if (thread.stack.low()) [[unlikely]] {
      result = evaluate_with_little_stack(state, raw, throwing);
    } else {
      result = pass_on(state, raw, throwing);
    }
    if (recorded) [[likely]] {
      Left how = Left::unwound;
      if (result != nullptr) {
        how = generator && is_suspended(frame) ? Left::yielded : Left::returned;
      } else if (throwing == 0 && instruction(frame) == first) {
        how = Left::unstarted;
      }
      if (!Sink::left_quickly(frame, innermost(state), code, how, result)) [[unlikely]]
        Sink::left(frame, innermost(state), code, how, result);
    }
    return result;
  }

  static int profile(PyObject*, PyFrameObject*, int what, PyObject* function) {
    if (function == nullptr) return 0;
    const Frame* frame = innermost(calling_state());
    if (what == PyTrace_C_CALL) {
      Sink::c_called(frame, function);
    } else if (what == PyTrace_C_RETURN || what == PyTrace_C_EXCEPTION) {
      Sink::c_left(frame, function, what == PyTrace_C_EXCEPTION);
    }
    return 0;
  }

  // An exception that was seen in a frame is handled there if the frame goes on with another line,
  // if only to clean up: that is what later versions call handled, too.
  static int trace(PyObject*, PyFrameObject*, int what, PyObject* argument) {
    thread_local constinit const Frame* raised_in = nullptr;
    thread_local constinit PyObject* raised =
        nullptr;  // only its type is looked at, while it lives
    const Frame* frame = innermost(calling_state());
    PyCodeObject* code = code_of(executable(frame));
    const std::int64_t offset = offset_in(code, instruction(frame));
    if (what == PyTrace_EXCEPTION) {
      PyObject* exception = PyTuple_GET_ITEM(argument, 1);
      if (!PyExceptionInstance_Check(exception)) return 0;
      Sink::raised(frame, exception, PyTuple_GET_ITEM(argument, 2), offset);
      raised_in = frame;
      raised = exception;
    } else if (what == PyTrace_LINE && raised_in == frame && raised_in != nullptr) {
      raised_in = nullptr;
      PyObject* handled = handled_exception();
      if (handled != nullptr && handled == raised) Sink::handled(frame, handled, offset);
    } else if (what == PyTrace_RETURN && raised_in == frame) {
      raised_in = nullptr;
    }
    return 0;
  }

  // Greenlets copy stretches of the C stack by their addresses, so there they must all lie in one
  // stack. Then there is no hook for a while, for anybody: the interpreter needs no C stack for
  // calls, and what happens meanwhile is a gap.
  [[gnu::cold, gnu::noinline]] static PyObject* evaluate_with_little_stack(PyThreadState* state,
                                                                           _PyInterpreterFrame* raw,
                                                                           int throwing) {
    if (!detail::greenlets_are_used()) {
      Call call = {state, raw, throwing};
      return static_cast<PyObject*>(Sink::thread().stack.call(continue_elsewhere, &call));
    }
    Sink::look_away();
    PyObject* result = pass_on(state, raw, throwing);
    Sink::look_again();
    return result;
  }

  [[gnu::always_inline]] static PyObject* pass_on(PyThreadState* state, _PyInterpreterFrame* raw,
                                                  int throwing) {
    const EvalFunction next = detail::next_evaluation;
    if (next == nullptr) [[likely]]
      return _PyEval_EvalFrameDefault(state, raw, throwing);
    auto& thread = Sink::thread();
    const Frame* before = thread.passing;
    thread.passing = reinterpret_cast<const Frame*>(raw);
    PyObject* result = next(state, raw, throwing);
    thread.passing = before;
    return result;
  }

  static inline CallEvents wanted_ = {};  // guarded by the GIL

  static void* continue_elsewhere(void* argument) {
    const Call call = *static_cast<Call*>(argument);
    return pass_on(call.state, call.frame, call.throwing);
  }
};

}  // namespace whence::cpython
