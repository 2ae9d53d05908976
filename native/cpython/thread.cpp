// thread.cpp: see thread.h.
//
// From 3.12 the current thread state is thread-local: a thread sees its own or none. On 3.11 it is
// one global, the state of whoever holds the GIL, so it counts only if it equals the state that
// this thread remembers as its own. No other thread can make it equal, so the comparison is not a
// race. PyGILState_Check is of no use: it says yes to every thread once a subinterpreter has
// existed.
#include "cpython/thread.h"

namespace whence::cpython {

constinit std::atomic<PyInterpreterState*> detail::main_interpreter = nullptr;

namespace {

bool is_own(PyThreadState* state) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  return state != nullptr;
#else
  return state != nullptr && state == PyGILState_GetThisThreadState();
#endif
}

// States of threads that are not attached are freed soon after that has been said.
bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

void remember_main_interpreter() noexcept {
  detail::main_interpreter.store(PyInterpreterState_Main(), std::memory_order_relaxed);
}

PyThreadState* own_state() noexcept {
  if (is_finalizing()) return nullptr;
  PyThreadState* state = PyGILState_GetThisThreadState();
  return state != nullptr && is_main(state->interp) ? state : nullptr;
}

PyThreadState* attached_state() noexcept {
  PyThreadState* state = calling_state();
  return is_own(state) && is_main(state->interp) ? state : nullptr;
}

}  // namespace whence::cpython
