// mapper.cpp: an extension that maps memory in a signal handler, and in one thread what another gives back.
#include <Python.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

constexpr size_t kSize = size_t{64} << 12;

std::atomic<long> signals = 0;

void* map_some() {
  return mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Both calls are ones that a handler may make.
void handle(int) {
  const int before = errno;
  munmap(map_some(), kSize);
  ++signals;
  errno = before;
}

// A signal every so many microseconds; 0: no more. How many there were.
PyObject* interrupt(PyObject*, PyObject* args) {
  int between;
  if (!PyArg_ParseTuple(args, "i", &between)) return nullptr;
  struct sigaction action{};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  if (between != 0) sigaction(SIGALRM, &action, nullptr);
  const itimerval timer = {{0, between}, {0, between}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  return PyLong_FromLong(signals);
}

// Maps so often, with the GIL; every third mapping stays, and a thread without the GIL gives the others back at once, so
// that the system has the place for the next. Addresses and sizes of those that stay.
PyObject* hand_over(PyObject*, PyObject* args) {
  int rounds;
  if (!PyArg_ParseTuple(args, "i", &rounds)) return nullptr;
  std::atomic<void*> handed = nullptr;
  std::atomic<bool> done = false;
  std::thread other([&] {
    for (;;) {
      const bool last = done;
      if (void* block = handed.exchange(nullptr)) munmap(block, kSize);
      if (last) return;
      std::this_thread::yield();
    }
  });
  PyObject* kept = PyList_New(0);
  for (int i = 0; i < rounds && kept != nullptr; ++i) {
    void* block = map_some();
    if (i % 3 != 2) {
      while (handed != nullptr) std::this_thread::yield();
      handed = block;
      continue;
    }
    PyObject* pair = Py_BuildValue("(KK)", reinterpret_cast<unsigned long long>(block),
                                   static_cast<unsigned long long>(kSize));
    PyList_Append(kept, pair);
    Py_XDECREF(pair);
  }
  done = true;
  other.join();
  return kept;
}

PyMethodDef methods[] = {{"interrupt", interrupt, METH_VARARGS, nullptr},
                         {"hand_over", hand_over, METH_VARARGS, nullptr},
                         {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "mapper", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_mapper() {
  return PyModule_Create(&definition);
}
