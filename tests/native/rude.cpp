// rude.cpp: an extension that captures and records where it is least convenient. Built against whence.h like
// any user's.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <whence.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

const whence_api* whence = nullptr;
std::mutex mutex;  // "the allocator's lock" of a program that captures under it

whence_stack capture_locked() {
  const std::lock_guard<std::mutex> lock(mutex);
  return whence->capture(WHENCE_PYTHON, 0, WHENCE_NO_LIMIT);
}

PyObject* capture(PyObject*, PyObject* args) {
  unsigned what = WHENCE_PYTHON, skip = 0, limit = WHENCE_NO_LIMIT;
  if (!PyArg_ParseTuple(args, "|III", &what, &skip, &limit)) return nullptr;
  return whence->stack_object(whence->capture(what, skip, limit));
}

PyObject* capture_id(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLong(whence->capture(WHENCE_PYTHON, 0, WHENCE_NO_LIMIT));
}

PyObject* stack_object(PyObject*, PyObject* arg) {
  const unsigned long id = PyLong_AsUnsignedLong(arg);
  if (PyErr_Occurred()) return nullptr;
  return whence->stack_object(static_cast<whence_stack>(id));
}

// Captures after giving up the GIL, on the same thread.
PyObject* capture_released(PyObject*, PyObject*) {
  whence_stack id;
  Py_BEGIN_ALLOW_THREADS id = capture_locked();
  Py_END_ALLOW_THREADS return whence->stack_object(id);
}

// Captures on a new thread that Python knows nothing of, while the caller keeps the GIL.
PyObject* capture_foreign(PyObject*, PyObject*) {
  whence_stack id = 12345;
  std::thread([&] { id = capture_locked(); }).join();
  return whence->stack_object(id);
}

// Calls a Python function on a new native thread that attaches itself.
PyObject* call_attached(PyObject*, PyObject* function) {
  PyObject* result = nullptr;
  Py_BEGIN_ALLOW_THREADS std::thread([&] {
    const PyGILState_STATE state = PyGILState_Ensure();
    result = PyObject_CallNoArgs(function);
    if (result == nullptr) PyErr_Print();
    PyGILState_Release(state);
  }).join();
  Py_END_ALLOW_THREADS if (result == nullptr)
      PyErr_SetString(PyExc_RuntimeError, "the function failed");
  return result;
}

// Threads with and without the GIL capture under one lock until each has done `rounds`. Returns how
// many captures of the threads without the GIL were not empty.
PyObject* storm(PyObject*, PyObject* args) {
  int threads, rounds;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "iiO", &threads, &rounds, &function)) return nullptr;
  std::atomic<int> wrong = 0, failed = 0;
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) wrong += capture_locked() != 0;
    });
    pool.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const PyGILState_STATE state = PyGILState_Ensure();
        capture_locked();
        PyObject* result = PyObject_CallNoArgs(function);
        if (result == nullptr) {
          PyErr_Clear();
          ++failed;
        }
        Py_XDECREF(result);
        PyGILState_Release(state);
      }
    });
  }
  Py_BEGIN_ALLOW_THREADS for (std::thread& thread : pool) thread.join();
  Py_END_ALLOW_THREADS return Py_BuildValue("ii", wrong.load(), failed.load());
}

// Captures in a subinterpreter, on this thread and on one that it starts. Returns the two ids.
PyObject* in_subinterpreter(PyObject*, PyObject*) {
  static PyMethodDef method = {"capture_id", capture_id, METH_NOARGS, nullptr};
  PyThreadState* own = PyThreadState_Get();
  PyThreadState* other = Py_NewInterpreter();
  long ids[2] = {-1, -1};
  if (other != nullptr) {
    PyObject* globals = PyDict_New();
    PyObject* function = PyCFunction_New(&method, nullptr);
    PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins());
    PyDict_SetItemString(globals, "capture_id", function);
    PyObject* done = PyRun_String(
        "import threading\n"
        "seen = [capture_id()]\n"
        "thread = threading.Thread(target=lambda: seen.append(capture_id()))\n"
        "thread.start()\n"
        "thread.join()\n",
        Py_file_input, globals, globals);
    if (done == nullptr) PyErr_Print();
    PyObject* seen = PyDict_GetItemString(globals, "seen");
    for (Py_ssize_t i = 0; done != nullptr && i < 2; ++i) {
      ids[i] = PyLong_AsLong(PyList_GetItem(seen, i));
    }
    Py_XDECREF(done);
    Py_DECREF(function);
    Py_DECREF(globals);
    Py_EndInterpreter(other);
  }
  PyThreadState_Swap(own);
  return Py_BuildValue("[ll]", ids[0], ids[1]);
}

void call_with_gil(PyObject* function) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* result = PyObject_CallNoArgs(function);
  if (result == nullptr) PyErr_Print();
  Py_XDECREF(result);
  PyGILState_Release(state);
}

// Calls its function once more when the thread's own storage is taken down, after whence's.
struct Late {
  PyObject* function = nullptr;
  ~Late() {
    if (function != nullptr) call_with_gil(function);
  }
};
thread_local Late late;

// Starts threads, one after the other, that call a function while they run and while they end.
PyObject* ending_threads(PyObject*, PyObject* args) {
  int threads;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "iO", &threads, &function)) return nullptr;
  Py_BEGIN_ALLOW_THREADS for (int i = 0; i < threads; ++i) {
    std::thread([&] {
      late.function = function;
      call_with_gil(function);
    }).join();
  }
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

// Lets Python's allocations number `first` to `end - 1`, counted from now, fail.
PyMemAllocatorEx kept_allocators[2];
long allocations = 0, first_failure = 0, end_of_failures = 0;

bool fails() {
  const long number = allocations++;
  return number >= first_failure && number < end_of_failures;
}

template <PyMemAllocatorDomain kDomain>
void make_failing() {
  PyMemAllocatorEx& kept = kept_allocators[kDomain - PYMEM_DOMAIN_MEM];
  PyMem_GetAllocator(kDomain, &kept);
  PyMemAllocatorEx failing = {
      &kept,
      [](void* own, size_t size) -> void* {
        auto* next = static_cast<PyMemAllocatorEx*>(own);
        return fails() ? nullptr : next->malloc(next->ctx, size);
      },
      [](void* own, size_t count, size_t size) -> void* {
        auto* next = static_cast<PyMemAllocatorEx*>(own);
        return fails() ? nullptr : next->calloc(next->ctx, count, size);
      },
      [](void* own, void* block, size_t size) -> void* {
        auto* next = static_cast<PyMemAllocatorEx*>(own);
        return fails() ? nullptr : next->realloc(next->ctx, block, size);
      },
      [](void* own, void* block) {
        auto* next = static_cast<PyMemAllocatorEx*>(own);
        next->free(next->ctx, block);
      },
  };
  PyMem_SetAllocator(kDomain, &failing);
}

PyObject* fail_allocations(PyObject*, PyObject* args) {
  if (!PyArg_ParseTuple(args, "ll", &first_failure, &end_of_failures)) return nullptr;
  make_failing<PYMEM_DOMAIN_MEM>();
  make_failing<PYMEM_DOMAIN_OBJ>();
  allocations = 0;
  Py_RETURN_NONE;
}

PyObject* allow_allocations(PyObject*, PyObject*) {
  PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &kept_allocators[0]);
  PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &kept_allocators[1]);
  Py_RETURN_NONE;
}

// An object that captures while it is being freed.
struct Dying {
  PyObject_HEAD
  PyObject* report;  // a list
};

PyObject* dying_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* report;
  if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &report)) return nullptr;
  auto* self = reinterpret_cast<Dying*>(type->tp_alloc(type, 0));
  if (self != nullptr) self->report = Py_NewRef(report);
  return reinterpret_cast<PyObject*>(self);
}

void dying_dealloc(PyObject* object) {
  auto* self = reinterpret_cast<Dying*>(object);
  const whence_stack id = whence->capture(WHENCE_PYTHON, 0, WHENCE_NO_LIMIT);
  PyObject* pending = PyErr_Occurred();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* stack = whence->stack_object(id);
  PyObject* item = Py_BuildValue("NO", stack, pending != nullptr ? Py_True : Py_False);
  PyList_Append(self->report, item);
  Py_XDECREF(item);
  PyErr_Restore(type, value, traceback);
  Py_DECREF(self->report);
  PyTypeObject* own_type = Py_TYPE(object);
  own_type->tp_free(object);
  Py_DECREF(own_type);
}

PyType_Slot dying_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(dying_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dying_dealloc)},
    {0, nullptr},
};
PyType_Spec dying_spec = {"rude.Dying", sizeof(Dying), 0, Py_TPFLAGS_DEFAULT, dying_slots};
PyObject* dying_type = nullptr;

// Frees an object while an exception is pending, then raises it.
PyObject* drop_and_raise(PyObject*, PyObject* args) {
  PyObject* report;
  if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &report)) return nullptr;
  PyObject* dying = PyObject_CallFunctionObjArgs(dying_type, report, nullptr);
  if (dying == nullptr) return nullptr;
  PyErr_SetString(PyExc_LookupError, "still pending");
  Py_DECREF(dying);
  return nullptr;
}

// Starts native threads, which end with the process, that write counters with these names, values 1,
// 2, 3..., and after each one put the value into `page`, an array of 64-bit numbers, from index
// `first` on. They never have the GIL.
PyObject* write_numbered(PyObject*, PyObject* args) {
  PyObject* names;
  int first, pause;
  Py_buffer page;  // never released: the threads keep writing to it
  if (!PyArg_ParseTuple(args, "O!iw*i", &PyList_Type, &names, &first, &page, &pause))
    return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); ++i) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(names, i), &size);
    const whence_name name = whence->name(text, static_cast<size_t>(size));
    auto* place = reinterpret_cast<std::atomic<uint64_t>*>(page.buf) + first + i;
    std::thread([=] {
      for (int64_t value = 1;; ++value) {
        whence->counter(name, value);
        place->store(static_cast<uint64_t>(value), std::memory_order_release);
        for (int spin = 0; spin < pause; ++spin)
          std::atomic_signal_fence(std::memory_order_seq_cst);
      }
    }).detach();
  }
  Py_RETURN_NONE;
}

// Native threads write `each` counters "w<first + i>" and end; all are joined.
PyObject* write_and_join(PyObject*, PyObject* args) {
  int threads;
  long each;
  if (!PyArg_ParseTuple(args, "il", &threads, &each)) return nullptr;
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    const std::string text = "w" + std::to_string(i);
    const whence_name name = whence->name(text.data(), text.size());
    pool.emplace_back([=] {
      for (long value = 1; value <= each; ++value) whence->counter(name, value);
    });
  }
  Py_BEGIN_ALLOW_THREADS for (std::thread& thread : pool) thread.join();
  Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

// One of everything, from a native thread without the GIL.
PyObject* record_everything(PyObject*, PyObject*) {
  std::thread([] {
    const whence_name job = whence->name("job", 3), bytes = whence->name("bytes", 5);
    whence->name_thread(whence->name("native worker", 13));
    whence_span span;
    whence->span_begin(&span, job);
    whence->mark(whence->name("half way", 8));
    whence->counter(bytes, -7);
    whence->counter_real(bytes, 0.25);
    const uint64_t begun = whence->collection_begin(1);
    whence->collection_end(begun, 1, 20, 3);
    whence->span_end(&span, 1);
  }).join();
  return PyBool_FromLong(whence->recording());
}

// Begins a span here and ends it on another thread.
PyObject* span_across_threads(PyObject*, PyObject*) {
  whence_span span;
  whence->span_begin(&span, whence->name("handed over", 11));
  std::thread([&] { whence->span_end(&span, 0); }).join();
  Py_RETURN_NONE;
}

// A child's status, or -1 if it took longer than ten seconds; then it is killed.
int wait_for(pid_t child) {
  int status = -1;
  for (int tries = 0; tries < 10'000; ++tries) {
    if (waitpid(child, &status, WNOHANG) != 0) return status;
    usleep(1000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return -1;
}

// fork() without Python knowing, and both sides go on in Python.
PyObject* fork_quietly(PyObject*, PyObject*) {
  const pid_t child = fork();
  return PyLong_FromLong(child);
}

PyObject* wait_for_child(PyObject*, PyObject* child) {
  const auto number = static_cast<pid_t>(PyLong_AsLong(child));
  int status;
  Py_BEGIN_ALLOW_THREADS status = wait_for(number);
  Py_END_ALLOW_THREADS return PyLong_FromLong(status);
}

// fork() without Python knowing. The child writes events and exits; its status.
PyObject* raw_fork(PyObject*, PyObject*) {
  const pid_t child = fork();
  if (child == 0) {
    const whence_name name = whence->name("child", 5);
    for (int64_t value = 1; value <= 1000; ++value) whence->counter(name, value);
    whence->capture(WHENCE_PYTHON, 0, WHENCE_NO_LIMIT);
    _exit(whence->recording() ? 1 : 0);
  }
  return PyLong_FromLong(wait_for(child));
}

PyMethodDef methods[] = {
    {"capture", capture, METH_VARARGS, nullptr},
    {"capture_id", capture_id, METH_NOARGS, nullptr},
    {"stack_object", stack_object, METH_O, nullptr},
    {"capture_released", capture_released, METH_NOARGS, nullptr},
    {"capture_foreign", capture_foreign, METH_NOARGS, nullptr},
    {"call_attached", call_attached, METH_O, nullptr},
    {"storm", storm, METH_VARARGS, nullptr},
    {"in_subinterpreter", in_subinterpreter, METH_NOARGS, nullptr},
    {"ending_threads", ending_threads, METH_VARARGS, nullptr},
    {"fail_allocations", fail_allocations, METH_VARARGS, nullptr},
    {"allow_allocations", allow_allocations, METH_NOARGS, nullptr},
    {"drop_and_raise", drop_and_raise, METH_VARARGS, nullptr},
    {"write_numbered", write_numbered, METH_VARARGS, nullptr},
    {"write_and_join", write_and_join, METH_VARARGS, nullptr},
    {"record_everything", record_everything, METH_NOARGS, nullptr},
    {"span_across_threads", span_across_threads, METH_NOARGS, nullptr},
    {"raw_fork", raw_fork, METH_NOARGS, nullptr},
    {"fork_quietly", fork_quietly, METH_NOARGS, nullptr},
    {"wait", wait_for_child, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rude", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_rude() {
  whence = whence_import();
  dying_type = whence != nullptr ? PyType_FromSpec(&dying_spec) : nullptr;
  if (dying_type == nullptr) return nullptr;
  PyObject* module = PyModule_Create(&definition);
  if (module != nullptr) PyModule_AddObjectRef(module, "Dying", dying_type);
  return module;
}
