// greedy.cpp: an extension that takes memory in every way the C library has, with the GIL and without it.
#include <Python.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

void* by_name(const std::string& how, size_t size) {
  void* block = nullptr;
  if (how == "malloc") return malloc(size);
  if (how == "calloc") return calloc(size / 2, 2);
  if (how == "realloc") return realloc(nullptr, size);
  if (how == "reallocarray") return reallocarray(nullptr, size / 2, 2);
  if (how == "aligned_alloc") return aligned_alloc(64, size);
  if (how == "memalign") return memalign(64, size);
  if (how == "posix_memalign") return posix_memalign(&block, 64, size) == 0 ? block : nullptr;
  if (how == "valloc") return valloc(size);
  if (how == "pvalloc") return pvalloc(size);
  if (how == "new") return ::operator new(size, std::nothrow);
  if (how == "strdup") {
    std::string text;
    text.reserve(2 * size);
    return strdup(text.append(size - 1, 'x').c_str());
  }
  if (how == "mmap") {
    block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block != MAP_FAILED ? block : nullptr;
  }
  return nullptr;
}

PyObject* address_of(void* block) {
  return PyLong_FromVoidPtr(block);
}

PyObject* take(PyObject*, PyObject* args) {
  const char* how;
  Py_ssize_t size;
  int released = 0;
  if (!PyArg_ParseTuple(args, "sn|p", &how, &size, &released)) return nullptr;
  const std::string name = how;
  if (!released) return address_of(by_name(name, static_cast<size_t>(size)));
  void* block;
  Py_BEGIN_ALLOW_THREADS block = by_name(name, static_cast<size_t>(size));
  Py_END_ALLOW_THREADS return address_of(block);
}

// (address, errno)
PyObject* move(PyObject*, PyObject* args) {
  unsigned long long address, size;
  if (!PyArg_ParseTuple(args, "KK", &address, &size)) return nullptr;
  errno = 0;
  void* block = realloc(reinterpret_cast<void*>(address), size);
  const int error = errno;
  return Py_BuildValue("(Ni)", address_of(block), error);
}

PyObject* give(PyObject*, PyObject* args) {
  unsigned long long address;
  if (!PyArg_ParseTuple(args, "K", &address)) return nullptr;
  errno = 1234;
  free(reinterpret_cast<void*>(address));
  return PyLong_FromLong(errno);
}

PyObject* unmap(PyObject*, PyObject* args) {
  unsigned long long address, size;
  if (!PyArg_ParseTuple(args, "KK", &address, &size)) return nullptr;
  return PyLong_FromLong(munmap(reinterpret_cast<void*>(address), size));
}

PyObject* remap(PyObject*, PyObject* args) {
  unsigned long long address, old_size, size;
  if (!PyArg_ParseTuple(args, "KKK", &address, &old_size, &size)) return nullptr;
  return address_of(mremap(reinterpret_cast<void*>(address), old_size, size, MREMAP_MAYMOVE));
}

// Is what dlsym() says of a name by who asks what this library calls?
PyObject* asks_right(PyObject*, PyObject*) {
  void* next = dlsym(RTLD_NEXT, "getppid");
  void* any = dlsym(RTLD_DEFAULT, "getppid");
  const bool missing = dlsym(RTLD_DEFAULT, "no_such_function") == nullptr && dlerror() != nullptr;
  return PyBool_FromLong(next != nullptr && any == next && missing);
}

// So many blocks of that size one after the other; half of them stay for a while.
PyObject* churn(PyObject*, PyObject* args) {
  Py_ssize_t count, size;
  if (!PyArg_ParseTuple(args, "nn", &count, &size)) return nullptr;
  void* kept[64] = {};
  for (Py_ssize_t i = 0; i < count; ++i) {
    void*& place = kept[i % 64];
    free(place);
    place = malloc(static_cast<size_t>(size + i % 64));
    static_cast<char*>(place)[0] = 1;
  }
  for (void* block : kept) free(block);
  Py_RETURN_NONE;
}

// Threads that Python knows nothing of take, move and give back blocks of one arena: which of them has one is settled
// by an exchange, and by nothing else. What is there at the end: [(address, size)].
struct Block {
  size_t size;
  char rest[8];
};

PyObject* share(PyObject*, PyObject* args) {
  unsigned long long seed;
  Py_ssize_t steps, places;
  int threads;
  if (!PyArg_ParseTuple(args, "Knni", &seed, &steps, &places, &threads)) return nullptr;
  std::vector<std::atomic<Block*>> arena(static_cast<size_t>(places));
  const auto work = [&](uint64_t state) {
    const auto random = [&](uint64_t below) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      return state % below;
    };
    for (Py_ssize_t i = 0; i < steps; ++i) {
      std::atomic<Block*>& place = arena[random(arena.size())];
      Block* block = place.exchange(nullptr);
      const size_t size = sizeof(Block) + random(2'000);
      if (block == nullptr || random(2) == 0) {
        block = static_cast<Block*>(realloc(block, size));
        block->size = size;
      } else {
        free(block);
        continue;
      }
      free(place.exchange(block));
    }
  };
  Py_BEGIN_ALLOW_THREADS std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back(work, (seed + 1) * 7919 + static_cast<uint64_t>(i));
  for (std::thread& thread : all) thread.join();
  Py_END_ALLOW_THREADS PyObject* left = PyList_New(0);
  for (Block* block : arena) {
    if (block == nullptr || left == nullptr) continue;
    PyObject* pair =
        Py_BuildValue("(NK)", address_of(block), static_cast<unsigned long long>(block->size));
    PyList_Append(left, pair);
    Py_XDECREF(pair);
  }
  return left;
}

// Threads one after the other for which the C library gives something back when all their destructors are done: the
// message about a library that is not there.
PyObject* end_late(PyObject*, PyObject* args) {
  int threads;
  if (!PyArg_ParseTuple(args, "i", &threads)) return nullptr;
  const auto fail = [] { static_cast<void>(dlopen("/no/such/library", RTLD_NOW)); };
  Py_BEGIN_ALLOW_THREADS for (int i = 0; i < threads; ++i) std::thread(fail).join();
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

// So many children, made while other threads take memory, without Python knowing. They take some, too, and ask for a
// function. Those that did not end well.
PyObject* fork_while_busy(PyObject*, PyObject* args) {
  int forks, failed = 0;
  if (!PyArg_ParseTuple(args, "i", &forks)) return nullptr;
  std::atomic<bool> done = false;
  const auto churn_on = [&] {
    while (!done) {
      void* kept[100];
      for (void*& block : kept) block = malloc(100);
      for (void* block : kept) free(block);
      dlsym(RTLD_DEFAULT, "no_such_function");
    }
  };
  Py_BEGIN_ALLOW_THREADS std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i) all.emplace_back(churn_on);
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      for (size_t size = 0; size < 1000; ++size) free(malloc(size));
      dlsym(RTLD_DEFAULT, "no_such_function");
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  done = true;
  for (std::thread& thread : all) thread.join();
  Py_END_ALLOW_THREADS return PyLong_FromLong(failed);
}

// A thread that is asked to end while it takes blocks, under a lock: no call that it makes there is
// one in which threads end. How far it came: 2 is beyond the lock.
PyObject* cancel_while_busy(PyObject*, PyObject*) {
  static std::atomic<int> came;
  came = 0;
  const auto work = [](void*) -> void* {
    came = 1;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end) {
      void* volatile block = malloc(100);  // or no compiler would
      free(block);
    }
    came = 2;
    pthread_testcancel();
    return nullptr;
  };
  pthread_t thread;
  Py_BEGIN_ALLOW_THREADS pthread_create(&thread, nullptr, work, nullptr);
  while (came == 0) sched_yield();
  pthread_cancel(thread);
  pthread_join(thread, nullptr);
  Py_END_ALLOW_THREADS return PyLong_FromLong(came);
}

PyMethodDef methods[] = {{"take", take, METH_VARARGS, nullptr},
                         {"move", move, METH_VARARGS, nullptr},
                         {"give", give, METH_VARARGS, nullptr},
                         {"unmap", unmap, METH_VARARGS, nullptr},
                         {"remap", remap, METH_VARARGS, nullptr},
                         {"asks_right", asks_right, METH_NOARGS, nullptr},
                         {"churn", churn, METH_VARARGS, nullptr},
                         {"share", share, METH_VARARGS, nullptr},
                         {"end_late", end_late, METH_VARARGS, nullptr},
                         {"fork_while_busy", fork_while_busy, METH_VARARGS, nullptr},
                         {"cancel_while_busy", cancel_while_busy, METH_NOARGS, nullptr},
                         {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "greedy", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_greedy() {
  return PyModule_Create(&definition);
}

// For who loads it as a plain library.
extern "C" __attribute__((visibility("default"))) void* greedy_take(size_t size) {
  return malloc(size);
}
extern "C" __attribute__((visibility("default"))) void greedy_give(void* block) {
  free(block);
}
