// evaluates.cpp: another tool's function that evaluates frames (PEP 523), which counts them. It can be put in and taken out
// in any order with others.
#include <Python.h>

namespace {

_PyFrameEvalFunction before = nullptr;
unsigned long long frames = 0;
bool is_in = false;

PyInterpreterState* interpreter() {
  return PyInterpreterState_Get();
}

PyObject* evaluate(PyThreadState* state, struct _PyInterpreterFrame* frame, int throwing) {
  ++frames;
  return before != nullptr ? before(state, frame, throwing)
                           : _PyEval_EvalFrameDefault(state, frame, throwing);
}

PyObject* put_in(PyObject*, PyObject*) {
  const _PyFrameEvalFunction there = _PyInterpreterState_GetEvalFrameFunc(interpreter());
  if (there != evaluate) {
    before = there == _PyEval_EvalFrameDefault ? nullptr : there;
    _PyInterpreterState_SetEvalFrameFunc(interpreter(), evaluate);
  }
  is_in = true;
  Py_RETURN_NONE;
}

// Puts back what it found, whoever has come since: that is what such tools do.
PyObject* take_out(PyObject*, PyObject*) {
  if (is_in) {
    _PyInterpreterState_SetEvalFrameFunc(interpreter(),
                                         before != nullptr ? before : _PyEval_EvalFrameDefault);
  }
  is_in = false;
  Py_RETURN_NONE;
}

PyObject* count(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(frames);
}

PyMethodDef functions[] = {
    {"put_in", put_in, METH_NOARGS, nullptr},
    {"take_out", take_out, METH_NOARGS, nullptr},
    {"count", count, METH_NOARGS, nullptr},
    {},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "evaluates", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_evaluates() {
  return PyModule_Create(&definition);
}
