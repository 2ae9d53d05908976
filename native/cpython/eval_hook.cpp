// eval_hook.cpp: see eval_hook.h. Empty from 3.12 on.
#include <Python.h>

#if PY_VERSION_HEX < 0x030C0000
#include "cpython/eval_hook.h"
#include "cpython/pending.h"
#include "cpython/ref.h"

namespace whence::cpython {
namespace {

// Somebody put a function above ours before ours was taken out. All guarded by the GIL.
bool left_below = false;

// Does a frame still come to us? Tried out, since nobody can be asked.
bool is_still_linked(bool (*has_met)(PyCodeObject*)) noexcept {
  const PendingAside aside;
  const Ref<> code(Py_CompileString("None", "whence", Py_file_input));
  const Ref<> globals(PyDict_New());
  if (!code || !globals) return false;
  const Ref<> result(PyEval_EvalCode(code.get(), globals.get(), globals.get()));
  return has_met(reinterpret_cast<PyCodeObject*>(code.get()));
}

}  // namespace

namespace detail {

EvalFunction next_evaluation = nullptr;

const char* put_evaluation_in(EvalFunction ours, bool (*has_met)(PyCodeObject*)) noexcept {
  PyInterpreterState* interpreter = PyInterpreterState_Main();
  const EvalFunction there = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (there == ours || (left_below && is_still_linked(has_met))) return nullptr;
  left_below = false;
  next_evaluation = there == _PyEval_EvalFrameDefault ? nullptr : there;
  _PyInterpreterState_SetEvalFrameFunc(interpreter, ours);
  return nullptr;
}

void take_evaluation_out(EvalFunction ours) noexcept {
  PyInterpreterState* interpreter = PyInterpreterState_Main();
  left_below = _PyInterpreterState_GetEvalFrameFunc(interpreter) != ours;
  if (left_below) return;
  const EvalFunction next = next_evaluation;
  _PyInterpreterState_SetEvalFrameFunc(interpreter,
                                       next != nullptr ? next : _PyEval_EvalFrameDefault);
}

bool evaluation_is_gone(EvalFunction ours, bool (*has_met)(PyCodeObject*)) noexcept {
  return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Main()) != ours &&
         !is_still_linked(has_met);
}

bool greenlets_are_used() noexcept {
  const PendingAside aside;
  PyObject* modules = PyImport_GetModuleDict();
  return modules != nullptr && PyDict_GetItemString(modules, "greenlet._greenlet") != nullptr;
}

}  // namespace detail
}  // namespace whence::cpython
#endif
