// event_functions.cpp: see event_functions.h; src/whence/_core.pyi says what each does.
#include "module/event_functions.h"

#include <limits>

#include "cpython/pending.h"
#include "cpython/ref.h"
#include "probes/counter.h"
#include "probes/gc.h"
#include "probes/mark.h"
#include "probes/name.h"

namespace whence::module {
namespace {

using cpython::Ref;

bool check_name(PyObject* name) noexcept {
  if (PyUnicode_Check(name)) return true;
  PyErr_Format(PyExc_TypeError, "a name must be a str, not %.100s", Py_TYPE(name)->tp_name);
  return false;
}

PyObject* mark(PyObject*, PyObject* name) {
  if (!check_name(name)) return nullptr;
  if (store::store().active()) probes::mark(probes::name_of(name));
  Py_RETURN_NONE;
}

// Integers beyond 64 bits are kept as reals, and as infinite if need be.
bool write_counter(std::uint64_t name, PyObject* value) noexcept {
  int overflow = 0;
  if (PyLong_Check(value)) {
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return probes::counter(name, std::int64_t{number}), true;
  }
  double real = PyFloat_AsDouble(value);
  if (real == -1.0 && PyErr_Occurred()) {
    if (overflow == 0) return false;
    PyErr_Clear();
    real = overflow * std::numeric_limits<double>::infinity();
  }
  return probes::counter(name, real), true;
}

PyObject* counter(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 2) return PyErr_Format(PyExc_TypeError, "counter() takes a name and a value");
  if (!check_name(args[0])) return nullptr;
  if (!PyNumber_Check(args[1])) {
    return PyErr_Format(PyExc_TypeError, "the value of a counter must be a number, not %.100s",
                        Py_TYPE(args[1])->tp_name);
  }
  if (store::store().active() && !write_counter(probes::name_of(args[0]), args[1])) return nullptr;
  Py_RETURN_NONE;
}

std::uint64_t number_in(PyObject* info, const char* key) noexcept {
  PyObject* value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : nullptr;
  if (value == nullptr || !PyLong_Check(value)) return 0;
  const long long number = PyLong_AsLongLong(value);
  if (number == -1 && PyErr_Occurred()) PyErr_Clear();
  return number > 0 ? static_cast<std::uint64_t>(number) : 0;
}

// Called by the collector, which never runs inside itself.
PyObject* gc_event(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  static std::uint64_t begun = 0;  // under the GIL
  if (nargs != 2 || !PyUnicode_Check(args[0]) || !store::store().active()) Py_RETURN_NONE;
  const std::uint64_t generation = number_in(args[1], "generation");
  if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
    begun = probes::gc_begin(generation);
  } else {
    probes::gc_end(begun, generation, number_in(args[1], "collected"),
                   number_in(args[1], "uncollectable"));
    begun = 0;
  }
  Py_RETURN_NONE;
}

// Meets this thread, and tells its name unless it is the one told before. The name, or nothing.
Ref<> name_this_thread(PyObject* thread, PyObject* before) noexcept {
  const cpython::PendingAside aside;
  if (!store::store().active() || store::store().this_thread(false) == 0) return {};
  Ref<> name(PyObject_GetAttrString(thread, "_name"));
  if (!name || !PyUnicode_Check(name.get())) return {};
  if (before == nullptr || PyUnicode_Compare(name.get(), before) != 0) {
    store::store().name_thread(store::detail::this_cursor->os_id, probes::name_of(name.get()));
  }
  return name;
}

// Runs in the place of Thread._bootstrap_inner, which `original` is: a new thread is met and named
// before it runs, its name is read once more when it has run, and its end is told before anybody
// who joins it goes on. Adds no Python frame.
PyObject* run_thread(PyObject* original, PyObject* thread) {
  const Ref<> name = name_this_thread(thread, nullptr);
  PyObject* result = PyObject_CallOneArg(original, thread);
  name_this_thread(thread, name.get());
  if (store::store().active()) store::store().this_thread_ends();
  return result;
}

PyMethodDef run_thread_definition = {"_bootstrap_inner", run_thread, METH_O, nullptr};

PyObject* make_thread_hook(PyObject*, PyObject* original) {
  const Ref<> function(PyCFunction_New(&run_thread_definition, original));
  return function ? PyInstanceMethod_New(function.get()) : nullptr;
}

}  // namespace

PyMethodDef event_functions[] = {
    {"mark", mark, METH_O,
     "mark($module, name, /)\n--\n\n"
     "Put a moment with a name into the recording, if there is one."},
    {"counter", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(counter)), METH_FASTCALL,
     "counter($module, name, value, /)\n--\n\n"
     "Put the value of a named quantity into the recording, if there is one."},
    {"gc_event", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(gc_event)), METH_FASTCALL,
     "gc_event($module, phase, info, /)\n--\n\n"},
    {"make_thread_hook", make_thread_hook, METH_O,
     "make_thread_hook($module, original, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
