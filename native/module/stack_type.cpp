// stack_type.cpp: see stack_type.h. What a stack says in words is written in Python
// (whence/_stack.py).
#include "module/stack_type.h"

#include <new>
#include <utility>

#include "cpython/ref.h"
#include "module/frame_objects.h"
#include "stacks/resolve.h"
#include "stacks/store.h"

namespace whence::module {
namespace {

using cpython::Ref;

template <class T>
T* allocate(PyTypeObject* type) noexcept {
  auto* object = static_cast<T*>(PyObject_Malloc(sizeof(T)));
  if (object == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  PyObject_Init(reinterpret_cast<PyObject*>(object), type);
  return object;
}

// Frees the stack, and then its origins one by one: a chain of them may be longer than the C stack
// is deep.
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject* origin = as_stack(self)->origin;
  if (as_stack(self)->detached) Py_XDECREF(as_detached(self)->frames);
  PyObject_Free(self);
  Py_DECREF(type);
  while (origin != nullptr && Py_REFCNT(origin) == 1) {
    PyObject* next = std::exchange(as_stack(origin)->origin, nullptr);
    Py_DECREF(origin);
    origin = next;
  }
  Py_XDECREF(origin);
}

// The state behind a stack's type; nullptr with an error set once the interpreter has taken the
// type apart.
const State* state_behind(PyObject* stack) noexcept {
  PyObject* module = reinterpret_cast<PyHeapTypeObject*>(Py_TYPE(stack))->ht_module;
  if (module != nullptr) return &state_of(module);
  PyErr_SetString(PyExc_RuntimeError, "whence is gone: the interpreter is shutting down");
  return nullptr;
}

Py_hash_t hash(PyObject* self) {
  if (as_stack(self)->detached) return as_detached(self)->hash;
  std::uint64_t content;
  if (stacks::content_hash(as_stack(self)->id, content)) return hash_from(content);
  PyErr_NoMemory();
  return -1;
}

// 1 or 0, or -1 with an error set. Origins are left out. Equal ids are equal stacks; two ids may
// still read the same (one source line that calls twice), and then they are equal too.
int same_frames(PyObject* a, PyObject* b) noexcept {
  const bool live = !as_stack(a)->detached && !as_stack(b)->detached;
  if (live && as_stack(a)->id == as_stack(b)->id) return 1;
  const Py_hash_t ours = hash(a), theirs = hash(b);
  if (ours == -1 || theirs == -1) return -1;
  if (ours != theirs) return 0;
  const State* state = state_behind(a);
  if (state == nullptr) return -1;
  const Ref<> our_frames(captured_frames(*state, a));
  const Ref<> their_frames(captured_frames(*state, b));
  if (!our_frames || !their_frames) return -1;
  return PyObject_RichCompareBool(our_frames.get(), their_frames.get(), Py_EQ);
}

PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(self) != Py_TYPE(other)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  int same = 1;
  while (same == 1 && self != other) {
    if (self == nullptr || other == nullptr) {
      same = 0;
      break;
    }
    same = same_frames(self, other);
    self = as_stack(self)->origin;
    other = as_stack(other)->origin;
  }
  if (same < 0) return nullptr;
  return PyBool_FromLong((same == 1) == (operation == Py_EQ));
}

PyObject* get_origin(PyObject* self, void*) {
  PyObject* origin = as_stack(self)->origin;
  return Py_NewRef(origin != nullptr ? origin : Py_None);
}

PyObject* get_depth(PyObject* self, void*) {
  if (!as_stack(self)->detached) {
    return PyLong_FromUnsignedLong(stacks::store().stacks.depth(as_stack(self)->id));
  }
  const State* state = state_behind(self);
  const Ref<> frames(state != nullptr ? captured_frames(*state, self) : nullptr);
  return frames ? PyLong_FromSsize_t(PyList_GET_SIZE(frames.get())) : nullptr;
}

// Calls whence._stack.<name>(self).
PyObject* in_words(PyObject* self, const char* name) {
  const Ref<> words(PyImport_ImportModule("whence._stack"));
  return words ? PyObject_CallMethod(words.get(), name, "O", self) : nullptr;
}

PyObject* get_frames(PyObject* self, void*) {
  return in_words(self, "frames");
}
PyObject* get_str(PyObject* self) {
  return in_words(self, "text");
}
PyObject* get_repr(PyObject* self) {
  return in_words(self, "describe");
}
PyObject* format(PyObject* self, PyObject*) {
  return in_words(self, "format_lines");
}
PyObject* summary(PyObject* self, PyObject*) {
  return in_words(self, "summary");
}
// What cannot change needs no copy, and one by its frames would not know how they were walked.
PyObject* copy(PyObject* self, PyObject*) {
  return Py_NewRef(self);
}
PyObject* reduce(PyObject* self, PyObject*) {
  return in_words(self, "reduce");
}

PyGetSetDef properties[] = {
    {"frames", get_frames, nullptr,
     "The frames as a tuple of Frame, innermost first, with what generated code came from.",
     nullptr},
    {"origin", get_origin, nullptr, "The stack given as origin=, or None.", nullptr},
    {"depth", get_depth, nullptr, "How many frames were captured; nothing is resolved to tell.",
     nullptr},
    {},
};

PyMethodDef methods[] = {
    {"format", format, METH_NOARGS,
     "format($self, /)\n--\n\nThe lines of a traceback, outermost frame first, like "
     "traceback.format_stack()."},
    {"summary", summary, METH_NOARGS,
     "summary($self, /)\n--\n\nThe same frames as a traceback.StackSummary."},
    {"__copy__", copy, METH_NOARGS, "__copy__($self, /)\n--\n\nThe stack itself."},
    {"__deepcopy__", copy, METH_O, "__deepcopy__($self, memo, /)\n--\n\nThe stack itself."},
    {"__reduce__", reduce, METH_NOARGS,
     "__reduce__($self, /)\n--\n\nA pickle carries the resolved frames and the origin."},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "Where the program was: an immutable, hashable stack made by whence.capture().")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_str, reinterpret_cast<void*>(get_str)},
    {Py_tp_repr, reinterpret_cast<void*>(get_repr)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {},
};

PyType_Spec spec = {
    "whence.Stack", sizeof(StackObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyTypeObject* make_stack_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

PyObject* new_stack(PyTypeObject* type, stacks::StackId id, PyObject* origin) noexcept {
  auto* stack = allocate<StackObject>(type);
  if (stack == nullptr) return nullptr;
  stack->id = id;
  stack->detached = false;
  stack->origin = Py_XNewRef(origin);
  return reinterpret_cast<PyObject*>(stack);
}

PyObject* new_detached_stack(const State& state, PyObject* frames, PyObject* origin) noexcept try {
  std::uint64_t hash = 0;
  for (Py_ssize_t i = PyTuple_GET_SIZE(frames); i-- != 0;) {
    PyObject* frame = PyTuple_GET_ITEM(frames, i);
    base::Location place;
    if (!check_frame(state, frame, place)) return nullptr;
    hash = hash_step(hash, frame, place);
  }
  auto* stack = allocate<DetachedStack>(state.stack_type);
  if (stack == nullptr) return nullptr;
  stack->head.id = stacks::kEmpty;
  stack->head.detached = true;
  stack->head.origin = Py_XNewRef(origin);
  stack->frames = Py_NewRef(frames);
  stack->hash = hash_from(hash);
  return reinterpret_cast<PyObject*>(stack);
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

}  // namespace whence::module
