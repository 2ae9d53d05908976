// eval_hook.cpp: somebody else's PEP 523 eval-frame function. It counts what it is asked to evaluate, by file and
// name, and goes on to whatever was there before it. Removed while another hook is above, it stays as a pass-through.
#include <Python.h>

#include <cstring>
#include <map>
#include <string>

namespace {

using Evaluate = _PyFrameEvalFunction;

// All guarded by the GIL.
std::map<std::string, long> counts;
std::string prefix;
Evaluate previous = nullptr;  // set while we are in the chain
bool counting = false;

PyCodeObject* borrowed_code(struct _PyInterpreterFrame* frame) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* code = PyUnstable_InterpreterFrame_GetCode(frame);
  Py_DECREF(code);  // the frame keeps it
  return reinterpret_cast<PyCodeObject*>(code);
#else
  struct Head {
    PyObject *function, *globals, *builtins, *locals;
    PyCodeObject* code;
  };
  return reinterpret_cast<Head*>(frame)->code;
#endif
}

// An exception may be pending (throw() into a generator), so nothing here may raise: names that
// are not ASCII, the only ones for which this could fail, are not counted.
void count(PyCodeObject* code) {
  if (!PyUnicode_IS_ASCII(code->co_filename) || !PyUnicode_IS_ASCII(code->co_qualname)) return;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (std::strncmp(file, prefix.c_str(), prefix.size()) != 0) return;
  ++counts[std::string(file) + ":" + PyUnicode_AsUTF8(code->co_qualname)];
}

PyObject* evaluate(PyThreadState* thread, struct _PyInterpreterFrame* frame, int throwing) {
  if (counting) count(borrowed_code(frame));
  return previous(thread, frame, throwing);
}

// Counts frames of code whose file begins with the argument.
PyObject* install(PyObject*, PyObject* argument) {
  const char* text = PyUnicode_AsUTF8(argument);
  if (text == nullptr) return nullptr;
  prefix = text;
  counting = true;
  if (previous == nullptr) {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    previous = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
  }
  Py_RETURN_NONE;
}

PyObject* remove(PyObject*, PyObject*) {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  counting = false;
  if (previous != nullptr && _PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate) {
    _PyInterpreterState_SetEvalFrameFunc(interpreter, previous);
    // Frames that are being evaluated through us still need `previous` only before they
    // begin, so it may be forgotten.
    previous = nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* counted(PyObject*, PyObject*) {
  PyObject* found = PyDict_New();
  for (const auto& [name, number] : counts) {
    PyObject* value = PyLong_FromLong(number);
    if (found == nullptr || value == nullptr ||
        PyDict_SetItemString(found, name.c_str(), value) < 0)
      Py_CLEAR(found);
    Py_XDECREF(value);
    if (found == nullptr) return nullptr;
  }
  return found;
}

PyMethodDef methods[] = {
    {"install", install, METH_O, nullptr},
    {"remove", remove, METH_NOARGS, nullptr},
    {"counted", counted, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "eval_hook", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_eval_hook() {
  return PyModule_Create(&definition);
}
