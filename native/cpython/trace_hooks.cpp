// trace_hooks.cpp: see trace_hooks.h. Empty from 3.12 on.
#include <Python.h>

#if PY_VERSION_HEX < 0x030C0000
#include "cpython/pending.h"
#include "cpython/trace_hooks.h"

namespace whence::cpython {
namespace {

template <class Visit>
void for_each_state(Visit&& visit) noexcept {
  PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
  for (; state != nullptr; state = PyThreadState_Next(state)) visit(state);
}

}  // namespace

void hook_thread(PyThreadState* state, Py_tracefunc profile, Py_tracefunc trace) noexcept {
  const PendingAside aside;
  if (profile != nullptr && state->c_profilefunc == nullptr) {
    _PyEval_SetProfile(state, profile, nullptr);
  }
  if (trace != nullptr && state->c_tracefunc == nullptr) _PyEval_SetTrace(state, trace, nullptr);
}

void hook_all_threads(Py_tracefunc profile, Py_tracefunc trace) noexcept {
  for_each_state([&](PyThreadState* state) { hook_thread(state, profile, trace); });
}

void unhook_all_threads(Py_tracefunc profile, Py_tracefunc trace) noexcept {
  const PendingAside aside;
  for_each_state([&](PyThreadState* state) {
    if (state->c_profilefunc == profile) _PyEval_SetProfile(state, nullptr, nullptr);
    if (state->c_tracefunc == trace) _PyEval_SetTrace(state, nullptr, nullptr);
  });
}

PyObject* handled_exception() noexcept {
  return _PyErr_GetTopmostException(PyThreadState_Get())->exc_value;
}

}  // namespace whence::cpython
#endif
