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
  const std::uint32_t recording = store::store().generation();
  if (recording != 0) probes::mark(recording, probes::name_of(recording, name));
  Py_RETURN_NONE;
}

// A counter's value: an integer of 64 bits, or a real.
struct Number {
  bool is_real;
  std::int64_t integer;
  double real;
};

// Integers beyond 64 bits become reals, infinite ones if need be. May run code of the program.
bool read_number(PyObject* value, Number& number) {
  int overflow = 0;
  if (PyLong_Check(value)) {
    number.integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return true;
  }
  number.is_real = true;
  number.real = PyFloat_AsDouble(value);
  if (number.real != -1.0 || !PyErr_Occurred()) return true;
  if (overflow == 0) return false;
  PyErr_Clear();
  number.real = overflow * std::numeric_limits<double>::infinity();
  return true;
}

PyObject* counter(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 2) return PyErr_Format(PyExc_TypeError, "counter() takes a name and a value");
  if (!check_name(args[0])) return nullptr;
  Number number = {};
  if (!read_number(args[1], number)) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
    return PyErr_Format(PyExc_TypeError, "the value of a counter must be a number, not %.100s",
                        Py_TYPE(args[1])->tp_name);
  }
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) Py_RETURN_NONE;
  const std::uint64_t name = probes::name_of(recording, args[0]);
  if (number.is_real) {
    probes::counter(recording, name, number.real);
  } else {
    probes::counter(recording, name, number.integer);
  }
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
  static thread_local std::uint64_t begun = 0;
  static thread_local std::uint32_t begun_in = 0;  // in that recording
  const std::uint32_t recording = store::store().generation();
  if (nargs != 2 || !PyUnicode_Check(args[0]) || recording == 0) Py_RETURN_NONE;
  const std::uint64_t generation = number_in(args[1], "generation");
  if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
    begun = probes::gc_begin(recording, generation);
    begun_in = recording;
  } else if (begun_in == recording) {
    probes::gc_end(recording, begun, generation, number_in(args[1], "collected"),
                   number_in(args[1], "uncollectable"));
    begun_in = 0;
  }
  Py_RETURN_NONE;
}

// Meets this thread, and tells its name unless it is the one told before. The name's number. Runs
// no code of the program: the name is taken from the object's own dictionary.
base::BytePool::Ref name_this_thread(PyObject* thread, base::BytePool::Ref before) noexcept {
  constexpr auto kNone = base::BytePool::kNone;
  const std::uint32_t recording = store::store().generation();
  if (recording == 0 || store::store().this_thread(false) == 0) return kNone;
  const cpython::PendingAside aside;
  const Ref<> attributes(PyObject_GenericGetDict(thread, nullptr));
  PyObject* name = attributes ? PyDict_GetItemString(attributes.get(), "_name") : nullptr;
  if (name == nullptr || !PyUnicode_Check(name)) return kNone;
  const base::BytePool::Ref ref = probes::ref_of(name);
  if (ref != before && ref != kNone) {
    const std::uint32_t os_id = store::detail::this_cursor->os_id;
    store::store().name_thread(os_id, store::store().string(recording, ref));
  }
  return ref;
}

// Runs in the place of Thread._bootstrap, which `original` is: a new thread is met and named
// before it runs, its name is read once more when it has run, and its end is told before anybody
// who joins it goes on. Adds no Python frame. A daemon thread that outlives the interpreter is
// unwound through here, without the GIL: so nothing in this frame has a destructor.
PyObject* run_thread(PyObject* original, PyObject* thread) {
  const base::BytePool::Ref name = name_this_thread(thread, base::BytePool::kNone);
  PyObject* result = PyObject_CallOneArg(original, thread);
  name_this_thread(thread, name);
  if (store::store().generation() != 0) store::store().this_thread_ends();
  return result;
}

PyMethodDef run_thread_definition = {"_bootstrap", run_thread, METH_O, nullptr};

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
