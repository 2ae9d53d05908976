// takes.cpp: an extension for bench/memory.py whose work is to take blocks of memory and give them back.
#include <Python.h>
#include <stdlib.h>

namespace {

constexpr Py_ssize_t kKept = 256;

// So many blocks, each as large as chance has it; those of some turns ago are given back.
PyObject* take(PyObject*, PyObject* arg) {
  const Py_ssize_t count = PyLong_AsSsize_t(arg);
  if (PyErr_Occurred()) return nullptr;
  char* kept[kKept] = {};
  unsigned state = 12345, sum = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    char*& place = kept[state >> 24];
    if (place != nullptr) sum += static_cast<unsigned char>(place[0]);
    if ((state & 7) == 0) {
      place = static_cast<char*>(realloc(place, 16 + (state >> 10) % 2000));
    } else {
      free(place);
      place = static_cast<char*>(malloc(16 + (state >> 10) % 500));
    }
    place[0] = static_cast<char>(i);
  }
  for (char* block : kept) free(block);
  return PyLong_FromUnsignedLong(sum);
}

PyMethodDef methods[] = {{"take", take, METH_O, nullptr}, {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "takes", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_takes() {
  return PyModule_Create(&definition);
}
