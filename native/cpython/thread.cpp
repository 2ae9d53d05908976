// thread.cpp: see thread.h.
//
// From 3.12 the current thread state is thread-local: a thread sees its own or none. On 3.11 it is
// one global, the state of whoever holds the GIL, so it counts only if it equals the state that
// this thread remembers as its own. No other thread can make it equal, so the comparison is not a
// race. PyGILState_Check is of no use: it says yes to every thread once a subinterpreter has
// existed.
#include "cpython/thread.h"

#include <atomic>

namespace whence::cpython {
namespace {

std::atomic<PyInterpreterState*> main_interpreter = nullptr;

bool is_own(PyThreadState* state) noexcept {
#if PY_VERSION_HEX >= 0x030C0000
  return state != nullptr;
#else
  return state != nullptr && state == PyGILState_GetThisThreadState();
#endif
}

}  // namespace

void remember_main_interpreter() noexcept {
  main_interpreter.store(PyInterpreterState_Main(), std::memory_order_relaxed);
}

PyThreadState* attached_state() noexcept {
  PyThreadState* state = calling_state();
  if (!is_own(state)) return nullptr;
  if (state->interp != main_interpreter.load(std::memory_order_relaxed)) return nullptr;
  return state;
}

}  // namespace whence::cpython
