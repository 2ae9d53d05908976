// tasks.cpp: see tasks.h.
#include "probes/tasks.h"

#include "base/address_map.h"
#include "base/clock.h"
#include "cpython/pending.h"
#include "cpython/ref.h"
#include "format/records/task.h"
#include "probes/call_codes.h"
#include "probes/name.h"
#include "store/write.h"

namespace whence::probes {

using cpython::Frame;
using cpython::PendingAside;
using cpython::Ref;

namespace detail {
PyTypeObject* awaited_types[3] = {};
}

namespace {

struct Known {
  const Frame* frame;  // of its coroutine; may be gone
  std::uint64_t id, parent, name;
  stacks::CodeId code;  // of its coroutine, if that is recorded
  bool begun;
};

// What asyncio has for us. All guarded by the GIL; kept until the process ends.
struct Asyncio {
  bool found = false;
  PyObject* current_task = nullptr;   // from 3.12, a function written in C
  PyObject* running_loop = nullptr;   // before, another,
  PyObject* current_tasks = nullptr;  // and tasks by loop
  PyTypeObject* c_task = nullptr;     // either may be missing
  PyTypeObject* python_task = nullptr;
  PyObject *get_name = nullptr, *get_coroutine = nullptr, *done = nullptr;  // of c_task
};
Asyncio asyncio;
// By their addresses, and those by the frames of their coroutines: both are theirs as long as they
// live, and who comes after is met when it is made or begins.
base::AddressMap<Known> known;
base::AddressMap<const void*> tasks_by_frame;
std::uint64_t last_id = 0;
std::uint32_t unannounced = 0;  // tasks that began and that nobody had told of
bool wrappers_watched = false;

PyObject* attribute(PyObject* object, const char* name) noexcept {
  PyObject* value = object != nullptr ? PyObject_GetAttrString(object, name) : nullptr;
  if (value == nullptr) PyErr_Clear();
  return value;
}

Ref<> module(const char* name) noexcept {
  const Ref<> text(PyUnicode_FromString(name));
  Ref<> found(text ? PyImport_GetModule(text.get()) : nullptr);
  if (!found) PyErr_Clear();
  return found;
}

PyTypeObject* as_type(PyObject* object) noexcept {
  if (object != nullptr && PyType_Check(object)) return reinterpret_cast<PyTypeObject*>(object);
  Py_XDECREF(object);
  return nullptr;
}

void watch_function(PyObject* owner, const char* name) noexcept {
  const Ref<> function(attribute(owner, name));
  if (function && PyFunction_Check(function.get())) {
    watch_returns(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.get())));
  }
}

// A task gets its name after the loop has made it: so on 3.11.
bool names_tasks_late(PyObject* tasks) noexcept {
  const Ref<> function(attribute(tasks, "create_task"));
  if (!function || !PyFunction_Check(function.get())) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.get()));
  const Ref<> late(PyUnicode_FromString("_set_task_name"));
  const int found = late ? PySequence_Contains(code->co_names, late.get()) : 0;
  if (found < 0) PyErr_Clear();
  return found == 1;
}

// The functions that call the loop's to make a task. What they return has been told of before, if
// the loop is asyncio's own.
void watch_wrappers(PyObject* tasks) noexcept {
  wrappers_watched = true;
  watch_function(tasks, "create_task");
  watch_function(tasks, "ensure_future");
  const Ref<> groups = module("asyncio.taskgroups");
  const Ref<> group(attribute(groups.get(), "TaskGroup"));
  watch_function(group.get(), "create_task");
}

// Nothing is imported: a program that has not imported asyncio has no tasks.
bool find_asyncio() noexcept {
  if (asyncio.found) return true;
  const Ref<> tasks = module("asyncio.tasks");
  const Ref<> events = module("asyncio.base_events");
  if (!tasks || !events) return false;
  asyncio.found = true;
  const Ref<> native = module("_asyncio");
  asyncio.current_task = attribute(native.get(), "current_task");
  asyncio.running_loop = attribute(native.get(), "_get_running_loop");
  asyncio.current_tasks = attribute(native.get(), "_current_tasks");
  asyncio.c_task = as_type(attribute(native.get(), "Task"));
  asyncio.python_task = as_type(attribute(tasks.get(), "_PyTask"));
  auto* c_task = reinterpret_cast<PyObject*>(asyncio.c_task);
  asyncio.get_name = attribute(c_task, "get_name");
  asyncio.get_coroutine = attribute(c_task, "get_coro");
  asyncio.done = attribute(c_task, "done");
  detail::awaited_types[0] = asyncio.c_task;
  detail::awaited_types[1] = asyncio.python_task;
  detail::awaited_types[2] = as_type(attribute(tasks.get(), "_GatheringFuture"));
  if (names_tasks_late(tasks.get())) watch_wrappers(tasks.get());
  const Ref<> loop(attribute(events.get(), "BaseEventLoop"));
  watch_function(loop.get(), "create_task");
  return true;
}

bool is_c_task(PyObject* value) noexcept {
  return asyncio.c_task != nullptr && PyObject_TypeCheck(value, asyncio.c_task);
}
bool is_task(PyObject* value) noexcept {
  return is_c_task(value) ||
         (asyncio.python_task != nullptr && PyObject_TypeCheck(value, asyncio.python_task));
}

// Of a task written in Python.
Ref<> own_attribute(PyObject* task, const char* name) noexcept {
  const Ref<> attributes(PyObject_GenericGetDict(task, nullptr));
  PyObject* value = attributes ? PyDict_GetItemString(attributes.get(), name) : nullptr;
  return Ref<>::borrow(value);
}
Ref<> name_of_task(PyObject* task) noexcept {
  if (!is_c_task(task)) return own_attribute(task, "_name");
  return Ref<>(asyncio.get_name ? PyObject_CallOneArg(asyncio.get_name, task) : nullptr);
}
bool is_done(PyObject* c_task) noexcept {
  const Ref<> done(asyncio.done ? PyObject_CallOneArg(asyncio.done, c_task) : nullptr);
  return done.get() != Py_False;
}

// Of one that is not done: get_coro() of 3.12.1 crashes for eager ones that are.
Ref<> coroutine_of(PyObject* task) noexcept {
  if (!is_c_task(task)) return own_attribute(task, "_coro");
  if (is_done(task)) return {};
  return Ref<>(asyncio.get_coroutine ? PyObject_CallOneArg(asyncio.get_coroutine, task) : nullptr);
}

Ref<> current_task() noexcept {
  if (asyncio.current_task != nullptr) {
    Ref<> task(PyObject_CallNoArgs(asyncio.current_task));
    if (!task) PyErr_Clear();
    return task;
  }
  if (asyncio.running_loop == nullptr || asyncio.current_tasks == nullptr) return {};
  const Ref<> loop(PyObject_CallNoArgs(asyncio.running_loop));
  if (!loop || loop.get() == Py_None) return {};
  return Ref<>::borrow(PyDict_GetItem(asyncio.current_tasks, loop.get()));
}

std::uint64_t id_of_task(PyObject* task) noexcept {
  const Known* one = task != nullptr ? known.find(task) : nullptr;
  return one != nullptr ? one->id : 0;
}

// The task whose coroutine has this frame.
Known* task_of(const Frame* frame) noexcept {
  const void* const* task = tasks_by_frame.find(frame);
  Known* one = task != nullptr ? known.find(*task) : nullptr;
  return one != nullptr && one->frame == frame ? one : nullptr;
}

std::uint64_t name_id_of(std::uint32_t recording, PyObject* task) noexcept {
  const Ref<> name = name_of_task(task);
  return name && PyUnicode_Check(name.get()) ? name_of(recording, name.get()) : 0;
}

void tell(const Known& task) noexcept {
  const auto encode = [&](std::uint8_t* out, format::Deltas& deltas) {
    return format::Task::encode(out, deltas, base::ticks(), task.id, task.parent, task.name,
                                task.code, reinterpret_cast<std::uintptr_t>(task.frame) >> 4);
  };
  store::store().write_metadata(format::kLongestCompact, encode);
}

void meet(std::uint32_t recording, PyObject* task, const Frame* frame, bool begun,
          std::uint64_t parent) noexcept {
  const stacks::CodeEntry* entry =
      decided_entry(cpython::code_of(cpython::executable(frame)), recording);
  const stacks::CodeId code = is_recorded(entry, recording) ? id_of(entry) : 0;
  const Known one = {frame, ++last_id, parent, name_id_of(recording, task), code, begun};
  Known* place = known.put(task);
  const void** by_frame = tasks_by_frame.put(frame);
  if (place == nullptr || by_frame == nullptr) return;
  *place = one;
  *by_frame = task;
  tell(one);
}

// A task is made in one function and may get its name in the one that called that.
void meet_again(std::uint32_t recording, PyObject* task, Known& one) noexcept {
  const std::uint64_t name = name_id_of(recording, task);
  if (name == one.name) return;
  one.name = name;
  tell(one);
}

// Is a task that a function returns the one that is known at its address? It is if it is eager:
// then its coroutine has begun, or has run to its end and is gone. And if it has not begun, but
// only where tasks are told of twice. Else it is a new one where another has died, perhaps with its
// coroutine where the other's was.
bool is_same(const Known& one, const Frame* frame) noexcept {
  if (frame == nullptr) return true;
  return one.frame == frame && (one.begun ? cpython::has_begun(frame) : wrappers_watched);
}

// The task that was running when this coroutine began, for one that begins inside another.
std::uint64_t enclosing_task(const Frame* frame) noexcept {
  for (; frame != nullptr; frame = cpython::previous(frame)) {
    if (cpython::hidden(frame) || !cpython::is_generator(frame)) continue;
    if (const Known* one = task_of(frame)) return one->id;
  }
  return 0;
}

}  // namespace

void forget_tasks() noexcept {
  known.clear();
  tasks_by_frame.clear();
  last_id = 0;
  unannounced = 0;
}

void found(std::uint32_t recording, PyObject* task) noexcept {
  if (!find_asyncio() || !is_task(task)) return;
  const PendingAside aside;
  const Ref<> coroutine = coroutine_of(task);
  const Frame* frame = coroutine ? cpython::frame_of_generator(coroutine.get()) : nullptr;
  if (frame == nullptr || cpython::executable(frame) == 0) return;
  meet(recording, task, frame, cpython::has_begun(frame), 0);
}

void coroutine_begins(std::uint32_t recording, const Frame* frame, const Frame* caller) noexcept {
  if (!find_asyncio()) return;
  const PendingAside aside;
  const Ref<> task = current_task();
  if (!task || !is_task(task.get())) return;
  Known* one = task_of(frame);
  if (one != nullptr && !one->begun && one == known.find(task.get())) {
    one->begun = true;
    return meet_again(recording, task.get(), *one);  // it may have got another name
  }
  const Ref<> coroutine = coroutine_of(task.get());
  if (!coroutine || cpython::frame_of_generator(coroutine.get()) != frame) return;
  const std::uint64_t parent = enclosing_task(caller);
  meet(recording, task.get(), frame, true, parent);
  // The first is a loop's main task, and eager ones have a parent. If there are more, this loop
  // makes its tasks in another way than asyncio's own.
  if (parent == 0 && ++unannounced == 3) watch_wrappers(module("asyncio.tasks").get());
}

void maybe_made(std::uint32_t recording, PyObject* value) noexcept {
  if (value == nullptr || !find_asyncio() || !is_task(value)) return;
  const PendingAside aside;
  const Ref<> coroutine = coroutine_of(value);
  const Frame* frame = coroutine ? cpython::frame_of_generator(coroutine.get()) : nullptr;
  Known* one = known.find(value);
  if (one != nullptr && is_same(*one, frame)) return meet_again(recording, value, *one);
  if (frame == nullptr) return;
  const Ref<> parent = current_task();
  meet(recording, value, frame, false, id_of_task(parent.get()));
}

void maybe_awaits(std::uint32_t recording, const Frame* frame, PyObject* value) noexcept {
  const Known* one = task_of(frame);
  if (one == nullptr) return;
  const PendingAside aside;
  const std::uint64_t id = one->id;
  const auto tell = [&](PyObject* awaited) {
    const std::uint64_t other = id_of_task(awaited);
    if (other == 0) return;
    store::write<format::Awaits>(recording, id, other);
  };
  if (is_task(value)) return tell(value);
  const Ref<> children = own_attribute(value, "_children");
  if (!children || !PyList_Check(children.get())) return;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(children.get()); ++i) {
    tell(PyList_GET_ITEM(children.get(), i));
  }
}

}  // namespace whence::probes
