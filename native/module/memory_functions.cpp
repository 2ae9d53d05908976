// memory_functions.cpp: see memory_functions.h; src/whence/_core.pyi says what each does.
#include "module/memory_functions.h"

#include "module/stack_type.h"
#include "probes/memory_control.h"
#include "stacks/store.h"

namespace whence::module {
namespace {

PyObject* start_memory(PyObject*, PyObject* args) {
  int detail, everywhere, native;
  unsigned events;
  if (!PyArg_ParseTuple(args, "iIpp", &detail, &events, &everywhere, &native)) return nullptr;
  const probes::MemoryWanted wanted = {static_cast<probes::Detail>(detail), events, everywhere != 0,
                                       native != 0};
  return Py_BuildValue("z", probes::start_memory(wanted));
}

PyObject* pause_memory(PyObject*, PyObject*) {
  probes::pause_memory();
  Py_RETURN_NONE;
}

PyObject* resume_memory(PyObject*, PyObject*) {
  return Py_BuildValue("z", probes::resume_memory());
}

PyObject* stop_memory(PyObject*, PyObject*) {
  return Py_BuildValue("z", probes::stop_memory());
}

PyObject* set_answering(PyObject*, PyObject* answering) {
  const int wanted = PyObject_IsTrue(answering);
  return wanted < 0 ? nullptr : PyBool_FromLong(probes::set_answering(wanted != 0));
}

PyObject* tell_memory_state(PyObject*, PyObject*) {
  return PyBool_FromLong(probes::tell_memory_state());
}

PyObject* stack_in_use(PyObject*, PyObject* address) {
  const unsigned long long wanted = PyLong_AsUnsignedLongLong(address);
  if (PyErr_Occurred()) return nullptr;
  const auto stack = probes::stack_in_use(wanted);
  if (!stack.has_value()) Py_RETURN_NONE;
  return PyLong_FromUnsignedLong(*stack);
}

PyObject* stack_numbered(PyObject* module, PyObject* number) {
  const unsigned long wanted = PyLong_AsUnsignedLong(number);
  if (PyErr_Occurred()) return nullptr;
  const auto stack = static_cast<stacks::StackId>(wanted);
  if (wanted != stack || !stacks::store().stacks.contains(stack)) {
    return PyErr_Format(PyExc_ValueError, "%lu is not a stack", wanted);
  }
  return new_stack(state_of(module).stack_type, stack, nullptr);
}

PyObject* forget_memory(PyObject*, PyObject*) {
  probes::forget_memory();
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef memory_functions[] = {
    {"start_memory", start_memory, METH_VARARGS,
     "start_memory($module, detail, events, everywhere, native, /)\n--\n\n"},
    {"pause_memory", pause_memory, METH_NOARGS, "pause_memory($module, /)\n--\n\n"},
    {"resume_memory", resume_memory, METH_NOARGS, "resume_memory($module, /)\n--\n\n"},
    {"stop_memory", stop_memory, METH_NOARGS, "stop_memory($module, /)\n--\n\n"},
    {"set_answering", set_answering, METH_O, "set_answering($module, answering, /)\n--\n\n"},
    {"tell_memory_state", tell_memory_state, METH_NOARGS, "tell_memory_state($module, /)\n--\n\n"},
    {"stack_numbered", stack_numbered, METH_O, "stack_numbered($module, number, /)\n--\n\n"},
    {"stack_in_use", stack_in_use, METH_O, "stack_in_use($module, address, /)\n--\n\n"},
    {"forget_memory", forget_memory, METH_NOARGS, "forget_memory($module, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
