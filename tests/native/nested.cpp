// nested.cpp: C++ that Python calls and that calls Python, in ways that are known by name.
//
// Functions have names of their own and are not inlined, so that a test can say where each must be.
#include <stdlib.h>
#include <whence.h>

#include <thread>

namespace {
const whence_api* whence;
}  // namespace

extern "C" {

// What comes after the call keeps the compiler from leaving the frame before it.
[[gnu::noinline, gnu::visibility("default")]] PyObject* nested_inner(PyObject* function) {
  PyObject* result = PyObject_CallNoArgs(function);
  asm volatile("" ::: "memory");
  return result;
}

[[gnu::noinline, gnu::visibility("default")]] PyObject* nested_call(PyObject*, PyObject* function) {
  PyObject* result = nested_inner(function);
  asm volatile("" ::: "memory");
  return result;
}

static thread_local PyObject* asked;

[[gnu::noinline, gnu::visibility("default")]] int nested_compare(const void*, const void*) {
  Py_XDECREF(PyObject_CallNoArgs(asked));
  asm volatile("" ::: "memory");
  return 0;
}

// Two numbers to sort are one comparison.
[[gnu::noinline, gnu::visibility("default")]] PyObject* nested_sort(PyObject*, PyObject* function) {
  PyObject* before = asked;
  asked = function;
  int numbers[2] = {2, 1};
  qsort(numbers, 2, sizeof(int), nested_compare);
  asked = before;
  if (PyErr_Occurred()) return nullptr;
  return PyLong_FromLong(numbers[0]);
}

// A stack of native frames, by the C API: with the GIL, or on a thread that Python does not know.
[[gnu::noinline, gnu::visibility("default")]] whence_stack nested_capture(uint32_t what,
                                                                          uint32_t skip,
                                                                          uint32_t limit) {
  const whence_stack stack = whence->capture(what, skip, limit);
  asm volatile("" ::: "memory");
  return stack;
}

[[gnu::noinline, gnu::visibility("default")]] void nested_thread(uint32_t skip, whence_stack* out) {
  *out = nested_capture(WHENCE_PYTHON | WHENCE_NATIVE, skip, WHENCE_NO_LIMIT);
  asm volatile("" ::: "memory");
}

}  // extern "C"

namespace {

PyObject* capture(PyObject*, PyObject* args) {
  unsigned what, skip, limit;
  if (!PyArg_ParseTuple(args, "III", &what, &skip, &limit)) return nullptr;
  return whence->stack_object(nested_capture(what, skip, limit));
}

PyObject* capture_elsewhere(PyObject*, PyObject* arg) {
  const auto skip = static_cast<uint32_t>(PyLong_AsUnsignedLong(arg));
  whence_stack stack = 0;
  Py_BEGIN_ALLOW_THREADS;
  std::thread([&] { nested_thread(skip, &stack); }).join();
  Py_END_ALLOW_THREADS;
  return whence->stack_object(stack);
}

PyMethodDef methods[] = {
    {"call", nested_call, METH_O, nullptr},
    {"sort", nested_sort, METH_O, nullptr},
    {"capture", capture, METH_VARARGS, nullptr},
    {"capture_elsewhere", capture_elsewhere, METH_O, nullptr},
    {},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "nested", nullptr, -1, methods, {}, {}, {}, {}};

}  // namespace

PyMODINIT_FUNC PyInit_nested() {
  whence = whence_import();
  return whence != nullptr ? PyModule_Create(&definition) : nullptr;
}
