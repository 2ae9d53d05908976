// run_functions.cpp: see run_functions.h; src/whence/_core.pyi says what each does.
#include "module/run_functions.h"

#include <signal.h>

#include <cstdlib>

#include "cpython/alone.h"
#include "cpython/ref.h"
#include "cpython/thread.h"
#include "probes/memory_control.h"

namespace whence::module {
namespace {

// Whoever calls the program may be ours; what is called is not, and what it takes is its own.
class Program {
 public:
  Program() noexcept : answering_(probes::set_answering(false)) {}
  ~Program() { probes::set_answering(answering_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 private:
  bool answering_;
};

PyObject* call_alone(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs == 0) return PyErr_Format(PyExc_TypeError, "call_alone() needs something to call");
  const Program program;
  return cpython::call_alone(cpython::calling_state(), [&] {
    return PyObject_Vectorcall(args[0], args + 1, static_cast<std::size_t>(nargs - 1), nullptr);
  });
}

PyObject* execute_alone(PyObject*, PyObject* args) {
  PyObject *code, *names;
  if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &PyDict_Type, &names)) return nullptr;
  if (PySys_Audit("exec", "O", code) < 0) return nullptr;
  const Program program;
  return cpython::call_alone(cpython::calling_state(),
                             [&] { return PyEval_EvalCode(code, names, names); });
}

PyObject* see_code(PyObject*, PyObject* codes) {
  const cpython::Ref<> all(PySequence_Fast(codes, "see_code() takes code objects"));
  if (!all) return nullptr;
  cpython::SeenCode seen;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); ++i) {
    PyObject* code = PySequence_Fast_GET_ITEM(all.get(), i);
    if (PyCode_Check(code)) seen.see(reinterpret_cast<PyCodeObject*>(code));
  }
  Py_RETURN_NONE;
}

void interrupt_this_process() {
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
}

PyObject* end_by_interrupt(PyObject*, PyObject*) {
  if (std::atexit(interrupt_this_process) != 0) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef run_functions[] = {
    {"call_alone", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_alone)),
     METH_FASTCALL, "call_alone($module, function, /, *args)\n--\n\n"},
    {"execute_alone", execute_alone, METH_VARARGS,
     "execute_alone($module, code, names, /)\n--\n\n"},
    {"see_code", see_code, METH_O, "see_code($module, codes, /)\n--\n\n"},
    {"end_by_interrupt", end_by_interrupt, METH_NOARGS, "end_by_interrupt($module, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
