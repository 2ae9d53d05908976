// handle_recorder.cpp: see handle_recorder.h.
#include "module/handle_recorder.h"

#include <limits>

#include "cpython/critical.h"
#include "cpython/ref.h"
#include "module/source_range.h"
#include "module/state.h"

namespace whence::module {
namespace {

using cpython::Ref;

constexpr std::int64_t kLargestHandle = std::numeric_limits<std::int64_t>::max() - 1;

// The next handle of this process: no two are the same, of whatever recorder or interpreter.
std::atomic<std::int64_t> next_handle = 0;

RecorderObject* as_recorder(PyObject* object) noexcept {
  return reinterpret_cast<RecorderObject*>(object);
}

const HandleTypes& types_of(const RecorderObject& recorder) noexcept {
  return state_of(recorder.module).handles;
}

void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  as_recorder(object)->rows.release();
  Py_XDECREF(as_recorder(object)->module);
  type->tp_free(object);
  Py_DECREF(type);
}

// Arguments are for the __init__ of a derived type.
PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  PyTypeObject* own = type;
  while (own->tp_dealloc != dealloc) own = own->tp_base;
  PyObject* module = PyType_GetModule(own);
  PyObject* made = module != nullptr ? type->tp_alloc(type, 0) : nullptr;
  if (made != nullptr) as_recorder(made)->module = Py_NewRef(module);
  return made;
}

// What issue() was given, by position or name; borrowed.
struct Given {
  PyObject* range = nullptr;
  PyObject* kind = nullptr;
  PyObject* stack = nullptr;
};

PyObject** argument_named(Given& given, const HandleTypes& types, PyObject* name) noexcept {
  PyObject** const places[] = {&given.range, &given.kind, &given.stack};
  for (int i = 0; i < 3; ++i) {
    if (name == types.names[i]) return places[i];
  }
  for (int i = 0; i < 3; ++i) {  // a name that is not interned
    if (PyUnicode_Compare(name, types.names[i]) == 0) return places[i];
  }
  return nullptr;
}

// False with an error set.
bool read_arguments(const HandleTypes& types, PyObject* const* args, Py_ssize_t count,
                    PyObject* names, Given& given) noexcept {
  if (count > 3) {
    PyErr_Format(PyExc_TypeError, "issue() takes range, kind and stack, not %zd arguments", count);
    return false;
  }
  if (count > 0) given.range = args[0];
  if (count > 1) given.kind = args[1];
  if (count > 2) given.stack = args[2];
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    PyObject** place = argument_named(given, types, name);
    if (place == nullptr || *place != nullptr) {
      PyErr_Format(PyExc_TypeError,
                   place == nullptr ? "issue() has no argument %R" : "issue() got %R twice", name);
      return false;
    }
    *place = args[count + i];
  }
  if (given.range != nullptr && given.kind != nullptr) return true;
  PyErr_SetString(
      PyExc_TypeError,
      "issue() needs a range, which may be None, and a kind: the name of the operation");
  return false;
}

[[gnu::cold]] bool refuse(const char* what, const char* wanted, PyObject* got) noexcept {
  PyErr_Format(PyExc_TypeError, "%s must be %s, not %.100s", what, wanted, Py_TYPE(got)->tp_name);
  return false;
}

// As they are kept, None as nullptr; false with an error set. The kind may be of a type that is
// derived from str.
bool check_arguments(const HandleTypes& types, Given& given) noexcept {
  if (given.range == Py_None) given.range = nullptr;
  if (given.stack == Py_None) given.stack = nullptr;
  if (given.range != nullptr && !Py_IS_TYPE(given.range, types.range)) {
    return refuse("range", "SourceRange or None", given.range);
  }
  if (!PyUnicode_Check(given.kind)) return refuse("kind", "a str", given.kind);
  if (given.stack != nullptr && !Py_IS_TYPE(given.stack, types.call)) {
    return refuse("stack", "InlinedCall or None", given.stack);
  }
  return true;
}

[[gnu::cold]] PyObject* no_handle_left() noexcept {
  return PyErr_Format(PyExc_OverflowError, "all %lld handles of this process have been issued",
                      static_cast<long long>(kLargestHandle));
}

// About as much as appending a tuple to a list: room, a number, a row. Nothing in between runs code
// of the program, so with the GIL, or in the section, rows are in the order of their handles.
PyObject* add_row(RecorderObject& recorder, const Given& given, PyObject* edge) noexcept {
  const Ref<> kind(exact_text(given.kind, "kind"));
  if (!kind) return nullptr;
  const cpython::Critical critical(reinterpret_cast<PyObject*>(&recorder));
  if (!recorder.rows.make_room()) [[unlikely]]
    return PyErr_NoMemory();
  const std::int64_t handle = next_handle.fetch_add(1, std::memory_order_relaxed);
  if (handle < 0 || handle > kLargestHandle) [[unlikely]] {
    next_handle.fetch_sub(1, std::memory_order_relaxed);
    return no_handle_left();
  }
  PyObject* number = PyLong_FromLongLong(handle);
  if (number == nullptr) return nullptr;
  recorder.rows.add({handle, Py_XNewRef(given.range), Py_NewRef(kind.get()),
                     Py_XNewRef(given.stack), Py_XNewRef(edge)});
  return number;
}

PyObject* issue(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  RecorderObject& recorder = *as_recorder(self);
  const HandleTypes& types = types_of(recorder);
  Given given;
  if (!read_arguments(types, args, count, names, given) || !check_arguments(types, given)) {
    return nullptr;
  }
  return add_row(recorder, given, nullptr);
}

// Of an edge that whence.handles has checked.
PyObject* issue_derived(PyObject* self, PyObject* args) {
  Given given;
  PyObject* edge;
  if (!PyArg_ParseTuple(args, "O!OOO:_derive", &PyTuple_Type, &edge, &given.range, &given.kind,
                        &given.stack)) {
    return nullptr;
  }
  RecorderObject& recorder = *as_recorder(self);
  if (!check_arguments(types_of(recorder), given)) return nullptr;
  return add_row(recorder, given, edge);
}

PyObject* snapshot(PyObject* self, PyObject*) {
  RecorderObject& recorder = *as_recorder(self);
  PyTypeObject* type = types_of(recorder).snapshot;
  PyObject* made = type->tp_alloc(type, 0);
  if (made == nullptr) return nullptr;
  as_snapshot(made)->recorder = reinterpret_cast<RecorderObject*>(Py_NewRef(self));
  as_snapshot(made)->count = recorder.rows.size();
  return made;
}

Py_ssize_t length(PyObject* self) {
  return static_cast<Py_ssize_t>(as_recorder(self)->rows.size());
}

template <class Function>
PyCFunction as_method(Function function) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef methods[] = {
    {"issue", as_method(issue), METH_FASTCALL | METH_KEYWORDS,
     "issue($self, range, kind, stack=None)\n--\n\n"
     "Return a new handle, an int that this process has not returned before.\n\n"
     "It stands for an operation: where it is in the source (None: not known), what it\n"
     "is called, and the calls that were inlined to get there, outermost first."},
    {"_derive", issue_derived, METH_VARARGS, "_derive($self, edge, range, kind, stack, /)\n--\n\n"},
    {"_snapshot", snapshot, METH_NOARGS, "_snapshot($self, /)\n--\n\n"},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("HandleRecorder(*args, **kwargs)\n--\n\n"
                                  "What whence.handles.Recorder is made of.")},
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, methods},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {},
};

PyType_Spec spec = {"whence._core.HandleRecorder", sizeof(RecorderObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

bool HandleRows::add_segment() noexcept {
  const Place place = locate(size_);
  if (place.segment >= std::size(segments_)) return false;
  auto* segment = static_cast<HandleRow*>(PyMem_Malloc(place.size * sizeof(HandleRow)));
  if (segment == nullptr) return false;
  segments_[place.segment] = next_ = segment;
  end_ = segment + place.size;
  return true;
}

std::size_t HandleRows::find(std::int64_t handle, std::size_t count) const noexcept {
  std::size_t first = 0;
  for (std::size_t left = count; left != 0;) {
    const std::size_t half = left / 2;
    const bool before = (*this)[first + half].handle < handle;
    first += before ? half + 1 : 0;
    left = before ? left - half - 1 : half;
  }
  return first < count && (*this)[first].handle == handle ? first : count;
}

void HandleRows::release() noexcept {
  for (std::size_t at = 0; at < size_; ++at) {
    const HandleRow& row = (*this)[at];
    Py_XDECREF(row.range);
    Py_DECREF(row.kind);
    Py_XDECREF(row.stack);
    Py_XDECREF(row.edge);
  }
  for (HandleRow*& segment : segments_) PyMem_Free(segment), segment = nullptr;
}

PyObject* skip_handles(PyObject*, PyObject* to) noexcept {
  const long long next = PyLong_AsLongLong(to);
  if (next == -1 && PyErr_Occurred()) return nullptr;
  std::int64_t now = next_handle;
  while (now < next && !next_handle.compare_exchange_weak(now, next)) continue;
  Py_RETURN_NONE;
}

PyTypeObject* make_recorder_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace whence::module
