// tasks.cpp: see tasks.h.
#include "probes/tasks.h"

#include <algorithm>
#include <iterator>
#include <string_view>

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

// Names that asyncio gives are numbers to us: there are as many of them as there are tasks.
struct TaskName {
  std::uint64_t value;  // a string's, or what follows "Task-"
  bool numbered;
  bool operator==(const TaskName&) const = default;
};

// What is known by a coroutine's frame, which may be gone.
struct Known {
  const PyObject* task;  // may be gone, too
  TaskName name;
  bool begun;
};

// What asyncio has for us. All guarded by the GIL; kept until the process ends.
struct Asyncio {
  bool found = false;
  PyObject* current_task = nullptr;   // from 3.12, a function written in C
  PyObject* running_loop = nullptr;   // before, another,
  PyObject* current_tasks = nullptr;  // and tasks by loop; from 3.14, those written in Python
  PyTypeObject* c_task = nullptr;     // either may be missing
  PyTypeObject* python_task = nullptr;
  PyObject *get_name = nullptr, *get_coroutine = nullptr, *done = nullptr;  // of c_task
};
Asyncio asyncio;
// By the frames of their coroutines, which are theirs as long as they live; who comes after is met
// when it is made or begins.
base::AddressMap<Known> known;
// Tasks that were met when they began. Eager ones among them get their names later, and may be over
// by then, with no frame to know them by.
struct BegunLately {
  static constexpr std::size_t kMost = 64;
  const PyObject* tasks[kMost] = {};
  std::size_t next = 0;

  void add(const PyObject* task) noexcept { tasks[next++ % kMost] = task; }
  [[nodiscard]] bool has(const PyObject* task) const noexcept {
    return std::find(std::begin(tasks), std::end(tasks), task) != std::end(tasks);
  }
};
BegunLately begun_lately;
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
  asyncio.current_tasks = attribute(tasks.get(), "_current_tasks");
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

bool is_c_task(const PyObject* value) noexcept {
  return asyncio.c_task != nullptr &&
         PyObject_TypeCheck(const_cast<PyObject*>(value), asyncio.c_task);
}
bool is_task(const PyObject* value) noexcept {
  return is_c_task(value) ||
         (asyncio.python_task != nullptr && PyObject_TypeCheck(value, asyncio.python_task));
}

// Of a task written in Python.
Ref<> own_attribute(PyObject* task, const char* name) noexcept {
  const Ref<> attributes(PyObject_GenericGetDict(task, nullptr));
  PyObject* value = attributes ? PyDict_GetItemString(attributes.get(), name) : nullptr;
  return Ref<>::borrow(value);
}
Ref<> name_object(PyObject* task) noexcept {
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
    if (task && task.get() != Py_None) return task;
  }
  if (asyncio.running_loop == nullptr || asyncio.current_tasks == nullptr) return {};
  const Ref<> loop(PyObject_CallNoArgs(asyncio.running_loop));
  if (!loop) PyErr_Clear();
  if (!loop || loop.get() == Py_None) return {};
  return Ref<>::borrow(PyDict_GetItem(asyncio.current_tasks, loop.get()));
}

// What tells tasks that live at one time apart. A reader finds out which one it is.
std::uint64_t number_of(const PyObject* task) noexcept {
  return reinterpret_cast<std::uintptr_t>(task) >> 4;
}

// "Task-17" -> 17; 0 for anything else, "Task-017" included.
std::uint64_t number_in(PyObject* name) noexcept {
  constexpr std::string_view kPrefix = "Task-";
  constexpr std::size_t kMostDigits = 18;
  if (!PyUnicode_IS_COMPACT_ASCII(name)) return 0;
  std::string_view text(static_cast<const char*>(PyUnicode_DATA(name)),
                        static_cast<std::size_t>(PyUnicode_GET_LENGTH(name)));
  if (!text.starts_with(kPrefix)) return 0;
  text.remove_prefix(kPrefix.size());
  if (text.empty() || text.size() > kMostDigits || text.front() == '0') return 0;
  std::uint64_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return 0;
    number = 10 * number + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

TaskName name_of_task(std::uint32_t recording, PyObject* task) noexcept {
  const Ref<> name = name_object(task);
  if (!name || !PyUnicode_Check(name.get())) return {0, false};
  if (const std::uint64_t number = number_in(name.get())) return {number, true};
  return {name_of(recording, name.get()), false};
}

void meet(std::uint32_t recording, PyObject* task, const Frame* frame, bool begun,
          std::uint64_t parent) noexcept {
  const stacks::CodeEntry* entry =
      decided_entry(cpython::code_of(cpython::executable(frame)), recording);
  const stacks::CodeId code = is_recorded(entry, recording) ? id_of(entry) : 0;
  const TaskName name = name_of_task(recording, task);
  if (Known* place = known.put(frame)) *place = {task, name, begun};
  const std::uint64_t generator = reinterpret_cast<std::uintptr_t>(frame) >> 4;
  if (name.numbered) {
    store::write_fact<format::NumberedTask>(number_of(task), parent, name.value, code, generator);
  } else {
    store::write_fact<format::Task>(number_of(task), parent, name.value, code, generator);
  }
}

void name_again(std::uint32_t recording, PyObject* task) noexcept {
  const Ref<> name = name_object(task);
  if (!name || !PyUnicode_Check(name.get())) return;
  store::write_fact<format::TaskName>(number_of(task), name_of(recording, name.get()));
}

// A task is made in one function and may get its name in the one that called that.
void meet_again(std::uint32_t recording, PyObject* task, Known& one) noexcept {
  const TaskName name = name_of_task(recording, task);
  if (name == one.name) return;
  one.name = name;
  name_again(recording, task);
}

// Is a task that a function returns the one that is known at its address? It is if it is eager:
// then its coroutine has begun, or has run to its end and is gone. And if it has not begun, but
// only where tasks are told of twice. Else it is a new one where another has died, perhaps with its
// coroutine where the other's was.
bool is_same(const Known& one, const PyObject* task, const Frame* frame) noexcept {
  return one.task == task && (one.begun ? cpython::has_begun(frame) : wrappers_watched);
}

// The task that was running when this coroutine began, for one that begins inside another.
std::uint64_t enclosing_task(const Frame* frame) noexcept {
  for (; frame != nullptr; frame = cpython::previous(frame)) {
    if (cpython::hidden(frame) || !cpython::is_generator(frame)) continue;
    if (const Known* one = known.find(frame)) return number_of(one->task);
  }
  return 0;
}

}  // namespace

void forget_tasks() noexcept {
  known.clear();
  begun_lately = {};
  unannounced = 0;
}

void found(std::uint32_t recording, PyObject* task) noexcept {
  if (!find_asyncio() || !is_task(task)) return;
  const PendingAside aside;
  const Ref<> coroutine = coroutine_of(task);
  const Frame* frame = coroutine ? cpython::frame_of_generator(coroutine.get()) : nullptr;
  if (frame == nullptr || cpython::executable(frame) == 0) return;
  const bool begun = cpython::has_begun(frame);
  Known* one = known.find(frame);
  // The same as before a pause, unless all of it is another's by now: the name tells.
  if (one != nullptr && one->task == task && one->name == name_of_task(recording, task)) {
    one->begun = begun;
    return;
  }
  meet(recording, task, frame, begun, 0);
}

void coroutine_begins(std::uint32_t recording, const Frame* frame, const Frame* caller) noexcept {
  if (!find_asyncio()) return;
  const PendingAside aside;
  const Ref<> task = current_task();
  if (!task || !is_task(task.get())) return;
  Known* one = known.find(frame);
  if (one != nullptr && !one->begun && one->task == task.get()) {
    one->begun = true;
    return meet_again(recording, task.get(), *one);  // it may have got another name
  }
  const Ref<> coroutine = coroutine_of(task.get());
  if (!coroutine || cpython::frame_of_generator(coroutine.get()) != frame) return;
  const std::uint64_t parent = enclosing_task(caller);
  meet(recording, task.get(), frame, true, parent);
  begun_lately.add(task.get());
  // The first is a loop's main task, and eager ones have a parent. If there are more, this loop
  // makes its tasks in another way than asyncio's own.
  if (parent == 0 && ++unannounced == 3) watch_wrappers(module("asyncio.tasks").get());
}

void maybe_made(std::uint32_t recording, PyObject* value) noexcept {
  if (value == nullptr || !find_asyncio() || !is_task(value)) return;
  const PendingAside aside;
  const Ref<> coroutine = coroutine_of(value);
  const Frame* frame = coroutine ? cpython::frame_of_generator(coroutine.get()) : nullptr;
  if (frame == nullptr) {
    if (begun_lately.has(value)) name_again(recording, value);
    return;
  }
  Known* one = known.find(frame);
  if (one != nullptr && is_same(*one, value, frame)) return meet_again(recording, value, *one);
  const Ref<> parent = current_task();
  const bool has_parent = parent && is_task(parent.get());
  meet(recording, value, frame, cpython::has_begun(frame),
       has_parent ? number_of(parent.get()) : 0);
}

void maybe_awaits(std::uint32_t recording, const Frame* frame, PyObject* value) noexcept {
  const Known* one = known.find(frame);
  if (one == nullptr || !one->begun) return;
  const std::uint64_t task = number_of(one->task);
  if (is_task(value)) {
    store::write<format::Awaits>(recording, task, number_of(value));
    return;
  }
  const PendingAside aside;
  const Ref<> children = own_attribute(value, "_children");
  if (!children || !PyList_Check(children.get())) return;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(children.get()); ++i) {
    const PyObject* child = PyList_GET_ITEM(children.get(), i);
    if (is_task(child)) store::write<format::Awaits>(recording, task, number_of(child));
  }
}

}  // namespace whence::probes
