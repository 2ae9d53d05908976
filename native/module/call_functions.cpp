// call_functions.cpp: see call_functions.h; src/whence/_core.pyi says what each does.
#include "module/call_functions.h"

#include <utility>

#include "cpython/ref.h"
#include "probes/calls_control.h"

namespace whence::module {
namespace {

using cpython::Ref;

bool read_patterns(PyObject* tuple, std::vector<std::string>& patterns) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    const char* text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, i));
    if (text == nullptr) return false;
    patterns.emplace_back(text);
  }
  return true;
}

PyObject* start_calls(PyObject*, PyObject* args) {
  PyObject *include, *exclude, *tasks;
  const char* own;
  int c_calls, exceptions;
  unsigned max_depth;
  unsigned long long min_duration;
  if (!PyArg_ParseTuple(args, "O!O!sppIKO!", &PyTuple_Type, &include, &PyTuple_Type, &exclude, &own,
                        &c_calls, &exceptions, &max_depth, &min_duration, &PyList_Type, &tasks)) {
    return nullptr;
  }
  probes::CallsWanted wanted;
  if (!read_patterns(include, wanted.filter.include)) return nullptr;
  if (!read_patterns(exclude, wanted.filter.exclude)) return nullptr;
  wanted.filter.own = own;
  wanted.events.c_calls = c_calls != 0;
  wanted.events.exceptions = exceptions != 0;
  wanted.max_depth = max_depth;
  wanted.min_duration = min_duration;
  return Py_BuildValue("z", probes::start_calls(std::move(wanted), tasks));
}

PyObject* pause_calls(PyObject*, PyObject*) {
  probes::pause_calls();
  Py_RETURN_NONE;
}

PyObject* resume_calls(PyObject*, PyObject* tasks) {
  if (!PyList_Check(tasks)) return PyErr_Format(PyExc_TypeError, "tasks must be a list");
  return Py_BuildValue("z", probes::resume_calls(tasks));
}

PyObject* stop_calls(PyObject*, PyObject*) {
  return Py_BuildValue("z", probes::stop_calls());
}

PyObject* forget_calls(PyObject*, PyObject*) {
  probes::forget_calls();
  Py_RETURN_NONE;
}

PyObject* calls_have_company(PyObject*, PyObject*) {
  return PyBool_FromLong(probes::calls_have_company());
}

}  // namespace

PyMethodDef call_functions[] = {
    {"start_calls", start_calls, METH_VARARGS,
     "start_calls($module, include, exclude, own, c_calls, exceptions, max_depth, min_duration, "
     "tasks, /)\n--\n\n"},
    {"pause_calls", pause_calls, METH_NOARGS, "pause_calls($module, /)\n--\n\n"},
    {"resume_calls", resume_calls, METH_O, "resume_calls($module, tasks, /)\n--\n\n"},
    {"stop_calls", stop_calls, METH_NOARGS, "stop_calls($module, /)\n--\n\n"},
    {"calls_have_company", calls_have_company, METH_NOARGS,
     "calls_have_company($module, /)\n--\n\n"},
    {"forget_calls", forget_calls, METH_NOARGS, "forget_calls($module, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
