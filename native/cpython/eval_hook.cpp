// eval_hook.cpp: see eval_hook.h. Empty from 3.12 on.
#include <Python.h>

#if PY_VERSION_HEX < 0x030C0000
#include "cpython/eval_hook.h"
#include "cpython/pending.h"
#include "cpython/ref.h"

namespace whence::cpython {
namespace detail {

EvalFunction next_evaluation = nullptr;

const char* put_evaluation_in(EvalFunction ours) noexcept {
  PyInterpreterState* interpreter = PyInterpreterState_Main();
  const EvalFunction there = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (there == ours) return nullptr;
  next_evaluation = there == _PyEval_EvalFrameDefault ? nullptr : there;
  _PyInterpreterState_SetEvalFrameFunc(interpreter, ours);
  return nullptr;
}

void take_evaluation_out(EvalFunction ours) noexcept {
  PyInterpreterState* interpreter = PyInterpreterState_Main();
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter) != ours) return;  // somebody is above us
  const EvalFunction next = next_evaluation;
  _PyInterpreterState_SetEvalFrameFunc(interpreter,
                                       next != nullptr ? next : _PyEval_EvalFrameDefault);
}

}  // namespace detail
}  // namespace whence::cpython
#endif
