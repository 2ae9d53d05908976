// capture_arguments.cpp: see capture_arguments.h.
#include "module/capture_arguments.h"

#include <algorithm>

namespace whence::module {
namespace {

bool read_count(PyObject* value, const char* name, std::uint32_t& out) noexcept {
  if (!PyIndex_Check(value)) {
    PyErr_Format(PyExc_TypeError, "capture() argument '%s' must be an int, not %.100s", name,
                 Py_TYPE(value)->tp_name);
    return false;
  }
  const Py_ssize_t count = PyNumber_AsSsize_t(value, nullptr);  // clips what is too large
  if (count == -1 && PyErr_Occurred()) return false;
  if (count < 0) {
    PyErr_Format(PyExc_ValueError, "capture() argument '%s' must not be negative", name);
    return false;
  }
  out = static_cast<std::uint32_t>(std::min<Py_ssize_t>(count, stacks::kNoLimit - 1));
  return true;
}

bool read_one(const State& state, PyObject* name, PyObject* value, CaptureArguments& out) noexcept {
  const auto is = [&](PyObject* known) {
    return name == known || PyUnicode_Compare(name, known) == 0;
  };
  if (is(state.skip)) return read_count(value, "skip", out.skip);
  if (is(state.limit)) return value == Py_None || read_count(value, "limit", out.limit);
  if (is(state.native)) {
    out.native = value == Py_True;
    if (PyBool_Check(value)) return true;
    PyErr_Format(PyExc_TypeError, "capture() argument 'native' must be a bool, not %.100s",
                 Py_TYPE(value)->tp_name);
    return false;
  }
  if (is(state.origin)) {
    if (value == Py_None) return true;
    out.origin = value;
    if (Py_IS_TYPE(value, state.stack_type)) return true;
    PyErr_Format(PyExc_TypeError, "capture() argument 'origin' must be a Stack or None, not %.100s",
                 Py_TYPE(value)->tp_name);
    return false;
  }
  PyErr_Format(PyExc_TypeError, "capture() got an unexpected keyword argument %R", name);
  return false;
}

}  // namespace

bool read_arguments(const State& state, PyObject* const* args, Py_ssize_t nargs, PyObject* names,
                    CaptureArguments& out) noexcept {
  if (nargs != 0) {
    PyErr_Format(PyExc_TypeError, "capture() takes only keyword arguments (%zd given by position)",
                 nargs);
    return false;
  }
  const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!read_one(state, PyTuple_GET_ITEM(names, i), args[nargs + i], out)) return false;
  }
  return true;
}

}  // namespace whence::module
