// faults.cpp: lets the system calls of whence fail, one by one. Takes the place of the functions in
// the table that _core gives out as a capsule (native/base/system.h).
#include <Python.h>
#include <errno.h>
#include <sys/mman.h>

#include <atomic>

#include "base/system.h"

namespace {

using whence::base::System;

System* table = nullptr;
System real;
constexpr int kShort = -1;  // in the place of an errno: does half of what it was asked for

std::atomic<long> calls = 0;  // since arm(), of the calls that count
long first = 0, last = -1;    // these fail
int error = 0;
int only = -1;  // the number of the one function that counts; -1: all do
const char* const kNames[] = {"open",     "close", "unlink", "rename", "fallocate", "fstat_size",
                              "identify", "pread", "pwrite", "mmap",   "munmap",    "madvise"};

bool fails(int function) {
  if (only >= 0 && function != only) return false;
  const long number = calls.fetch_add(1);
  if (number < first || number > last) return false;
  errno = error == kShort ? EIO : error;
  return true;
}

System make_failing() {
  System failing;
  failing.open = [](const char* path, int flags, unsigned mode) {
    return fails(0) ? -1 : real.open(path, flags, mode);
  };
  // These two do what they are asked for all the same, or the test would leak.
  failing.close = [](int file) {
    const bool bad = fails(1);
    const int result = real.close(file);
    return bad ? -1 : result;
  };
  failing.unlink = [](const char* path) { return fails(2) ? -1 : real.unlink(path); };
  failing.rename = [](const char* from, const char* to) {
    return fails(3) ? -1 : real.rename(from, to);
  };
  failing.fallocate = [](int file, off_t offset, off_t length) {
    return fails(4) ? -1 : real.fallocate(file, offset, length);
  };
  failing.fstat_size = [](int file, off_t* size) {
    return fails(5) ? -1 : real.fstat_size(file, size);
  };
  failing.identify = [](int file, whence::base::FileId* id) {
    return fails(6) ? -1 : real.identify(file, id);
  };
  failing.pread = [](int file, void* data, size_t size, off_t offset) -> ssize_t {
    if (!fails(7)) return real.pread(file, data, size, offset);
    return error == kShort ? real.pread(file, data, size / 2 + 1, offset) : -1;
  };
  failing.pwrite = [](int file, const void* data, size_t size, off_t offset) -> ssize_t {
    if (!fails(8)) return real.pwrite(file, data, size, offset);
    return error == kShort ? real.pwrite(file, data, size / 2 + 1, offset) : -1;
  };
  failing.mmap = [](void* at, size_t size, int protection, int flags, int file, off_t offset) {
    return fails(9) ? MAP_FAILED : real.mmap(at, size, protection, flags, file, offset);
  };
  failing.munmap = [](void* at, size_t size) {
    const bool bad = fails(10);
    const int result = real.munmap(at, size);
    return bad ? -1 : result;
  };
  failing.madvise = [](void* at, size_t size, int advice) {
    return fails(11) ? -1 : real.madvise(at, size, advice);
  };
  return failing;
}

// arm(first, last, errno, function=None): calls number `first` to `last`, from 0, fail.
PyObject* arm(PyObject*, PyObject* args) {
  const char* function = nullptr;
  if (!PyArg_ParseTuple(args, "lli|z", &first, &last, &error, &function)) return nullptr;
  only = -1;
  for (int i = 0; function != nullptr && i < 12; ++i) {
    if (strcmp(function, kNames[i]) == 0) only = i;
  }
  if (function != nullptr && only < 0) return PyErr_Format(PyExc_ValueError, "no such call");
  calls = 0;
  *table = make_failing();
  Py_RETURN_NONE;
}

// How many calls there were since arm().
PyObject* disarm(PyObject*, PyObject*) {
  *table = real;
  return PyLong_FromLong(calls.load());
}

PyMethodDef methods[] = {
    {"arm", arm, METH_VARARGS, nullptr},
    {"disarm", disarm, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "faults", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_faults() {
  table = static_cast<System*>(PyCapsule_Import("whence._core._system", 0));
  if (table == nullptr) return nullptr;
  real = *table;
  PyObject* module = PyModule_Create(&definition);
  if (module != nullptr) PyModule_AddIntConstant(module, "SHORT", kShort);
  return module;
}
