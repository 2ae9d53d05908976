// pool.cpp: an allocator with a lock of its own that reports what it does through whence.h.
//
// It reports while it holds the lock, with the GIL and without: the classic deadlock of allocators
// if whoever is told waits for the GIL.
#include <whence.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace {

const whence_api* whence;
whence_domain domain;

constexpr uint64_t kSize = 256;
constexpr uint64_t kFirst = 0x1000;

std::mutex lock;  // guards the rest, and is held while whence is told
std::vector<uint64_t> spare;
uint64_t next = kFirst;

uint64_t take(uint64_t size) {
  const std::lock_guard<std::mutex> guard(lock);
  if (spare.empty()) {
    whence->segment_allocated(domain, next, 16 * kSize);
    for (int i = 0; i < 16; ++i, next += kSize) spare.push_back(next);
  }
  const uint64_t block = spare.back();
  spare.pop_back();
  whence->allocated(domain, block, size);
  return block;
}

void give(uint64_t block) {
  const std::lock_guard<std::mutex> guard(lock);
  whence->freed(domain, block);
  spare.push_back(block);
}

// What a capsule has is its block.
void give_capsule(PyObject* capsule) {
  give(reinterpret_cast<uint64_t>(PyCapsule_GetPointer(capsule, nullptr)));
}

PyObject* take_object(PyObject*, PyObject* size) {
  const unsigned long long wanted = PyLong_AsUnsignedLongLong(size);
  if (PyErr_Occurred()) return nullptr;
  return PyCapsule_New(reinterpret_cast<void*>(take(wanted)), nullptr, give_capsule);
}

// A block taken and given back while the GIL is given away.
PyObject* use_released(PyObject*, PyObject*) {
  uint64_t block;
  Py_BEGIN_ALLOW_THREADS block = take(33);
  give(block);
  Py_END_ALLOW_THREADS return PyLong_FromUnsignedLongLong(block);
}

PyObject* address_of(PyObject*, PyObject* capsule) {
  return PyLong_FromVoidPtr(PyCapsule_GetPointer(capsule, nullptr));
}

// So many threads take and give so many blocks each, without the GIL; all are joined.
PyObject* storm(PyObject*, PyObject* args) {
  int threads;
  long rounds;
  if (!PyArg_ParseTuple(args, "il", &threads, &rounds)) return nullptr;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([rounds] {
      for (long round = 0; round < rounds; ++round) give(take(64));
    });
  }
  Py_BEGIN_ALLOW_THREADS for (std::thread& thread : all) thread.join();
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

PyObject* fail(PyObject*, PyObject*) {
  whence->out_of_memory(domain, 1000, 7);
  whence->out_of_memory(domain, 2000, WHENCE_NOT_KNOWN);
  Py_RETURN_NONE;
}

PyObject* release(PyObject*, PyObject*) {
  whence->segment_freed(domain, kFirst);
  Py_RETURN_NONE;
}

// Domains that are none: nothing must come of it.
PyObject* tell_nobody(PyObject*, PyObject*) {
  for (const whence_domain none : {0u, 7u, 8u + 1024u, 0xFFFFFFFFu}) {
    whence->allocated(none, 1, 1);
    whence->freed(none, 1);
    whence->segment_allocated(none, 1, 1);
    whence->segment_freed(none, 1);
    whence->out_of_memory(none, 1, 1);
  }
  return PyBool_FromLong(whence->domain("test pool", 9) == domain && domain != 0);
}

// What a backend would tell: handle, start and end, with the GIL and without.
PyObject* work(PyObject*, PyObject* args) {
  long long handle;
  unsigned long long start, end;
  const char* name_space;
  if (!PyArg_ParseTuple(args, "LKKz", &handle, &start, &end, &name_space)) return nullptr;
  const whence_backend backend = whence->backend("test backend", 12, name_space);
  const whence_name name = whence->name("kernel", 6);
  whence->handle_event(backend, handle, start, end, name);
  Py_BEGIN_ALLOW_THREADS whence->handle_event(backend, handle, start, end, name);
  Py_END_ALLOW_THREADS whence->handle_event(0, handle, start, end, name);
  return PyBool_FromLong(backend != 0);
}

PyMethodDef methods[] = {
    {"take", take_object, METH_O, nullptr},
    {"address_of", address_of, METH_O, nullptr},
    {"storm", storm, METH_VARARGS, nullptr},
    {"fail", fail, METH_NOARGS, nullptr},
    {"release", release, METH_NOARGS, nullptr},
    {"tell_nobody", tell_nobody, METH_NOARGS, nullptr},
    {"use_released", use_released, METH_NOARGS, nullptr},
    {"work", work, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "pool", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_pool() {
  whence = whence_import();
  if (whence == nullptr) return nullptr;
  domain = whence->domain("test pool", 9);
  return PyModule_Create(&definition);
}
