// span_type.cpp: see span_type.h. A span refers to no object of the program but its name, so the
// collector need not know it and a cycle is impossible.
#include "module/span_type.h"

#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "cpython/critical.h"
#include "cpython/ref.h"
#include "format/tags.h"
#include "module/state.h"
#include "module/tags.h"
#include "probes/name.h"
#include "probes/span.h"

namespace whence::module {
namespace {

using cpython::Ref;

struct SpanObject {
  PyObject_HEAD
  PyObject* name;      // nullptr: a span that is not recorded
  std::uint8_t* tags;  // encoded; PyMem
  std::uint32_t tags_size;
  std::uint32_t entered;  // how often; only the outermost counts
  probes::Span span;

  [[nodiscard]] std::span<const std::uint8_t> all_tags() const noexcept {
    return {tags, tags_size};
  }
};

SpanObject* as_span(PyObject* object) noexcept {
  return reinterpret_cast<SpanObject*>(object);
}

// Spans of at least this many ticks are told of. 0: none are.
std::atomic<std::uint64_t> long_ticks = 0;

// A span without memory for its tags has none.
void copy_tags(SpanObject& span, const std::uint8_t* tags, std::size_t size) noexcept {
  span.tags = size != 0 ? static_cast<std::uint8_t*>(PyMem_Malloc(size)) : nullptr;
  if (span.tags == nullptr) return;
  std::memcpy(span.tags, tags, size);
  span.tags_size = static_cast<std::uint32_t>(size);
}

PyObject* allocate(PyTypeObject* type, PyObject* name) noexcept {
  auto* self = static_cast<SpanObject*>(PyObject_Malloc(sizeof(SpanObject)));
  if (self == nullptr) return nullptr;
  PyObject_Init(reinterpret_cast<PyObject*>(self), type);
  self->name = Py_XNewRef(name);
  self->tags = nullptr;
  self->tags_size = self->entered = 0;
  self->span.start = 0;
  return reinterpret_cast<PyObject*>(self);
}

// Out of memory, a program that measures itself does what it would do otherwise: it gets a span
// that measures nothing.
PyObject* allocate_or_spare(PyTypeObject* type, PyObject* name) noexcept {
  PyObject* self = name != nullptr ? allocate(type, name) : nullptr;
  if (self != nullptr) return self;
  PyObject* module = PyType_GetModule(type);
  return module != nullptr ? Py_NewRef(state_of(module).spare_span) : nullptr;
}

PyObject* vectorcall(PyObject* type, PyObject* const* args, std::size_t flags, PyObject* names) {
  if (PyVectorcall_NARGS(flags) != 1 || !PyUnicode_Check(args[0])) {
    return PyErr_Format(PyExc_TypeError, "span() takes a name, a str, and tags by keyword");
  }
  // A copy of a name that is not exactly a str: that could lead back to the span.
  const Ref<> name(PyUnicode_FromObject(args[0]));
  if (!name) PyErr_Clear();
  PyObject* self = allocate_or_spare(reinterpret_cast<PyTypeObject*>(type), name.get());
  if (self == nullptr || names == nullptr || as_span(self)->name == nullptr) return self;
  std::uint8_t tags[format::kMostTagBytes];
  copy_tags(*as_span(self), tags, encode_tags(names, args + 1, tags));
  return self;
}

void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  SpanObject* self = as_span(object);
  Py_XDECREF(self->name);
  PyMem_Free(self->tags);
  PyObject_Free(object);
  Py_DECREF(type);
}

// The number before. Threads that share a span may be here at one time.
std::uint32_t count(std::uint32_t& number, std::uint32_t by) noexcept {
  return std::atomic_ref(number).fetch_add(by, std::memory_order_relaxed);
}

PyObject* enter(PyObject* object, PyObject*) {
  SpanObject* self = as_span(object);
  if (self->name == nullptr || count(self->entered, 1) != 0) return Py_NewRef(object);
  const std::uint32_t recording = store::store().generation();
  self->span.start = 0;
  if (recording != 0) {
    self->span.generation = recording;
    self->span.name = probes::name_of(recording, self->name);
    if (self->tags_size != 0) write_tag_names(recording, self->all_tags());
    probes::begin(self->span, self->all_tags());
  }
  return Py_NewRef(object);
}

// A new reference, or nullptr.
PyObject* long_span_callback(PyObject* module) noexcept {
  const cpython::Critical critical(module);
  return Py_XNewRef(state_of(module).on_long_span);
}

// A thread that the interpreter ends while it is in Python is unwound through here: so nothing in
// this frame has a destructor, and it is not noexcept. What the callback raises is dropped, unless
// it is none of its own, like KeyboardInterrupt. False with that set.
[[gnu::cold, gnu::noinline]] bool tell_of_long_span(SpanObject& self, std::uint64_t ticks) {
  PyObject* module = PyType_GetModule(Py_TYPE(reinterpret_cast<PyObject*>(&self)));
  PyObject* callback = module != nullptr ? long_span_callback(module) : nullptr;
  if (callback == nullptr) return PyErr_Clear(), true;
  const double seconds =
      static_cast<double>(ticks) / static_cast<double>(base::estimate_frequency());
  PyObject* done =
      PyObject_CallFunction(callback, "OL", self.name, static_cast<long long>(seconds * 1e9));
  Py_DECREF(callback);
  Py_XDECREF(done);
  if (done != nullptr) return true;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
  PyErr_Clear();
  return true;
}

PyObject* leave(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  SpanObject* self = as_span(object);
  if (self->entered == 0 || count(self->entered, ~0U) != 1) Py_RETURN_FALSE;
  const bool error = nargs > 0 && args[0] != Py_None;
  const std::uint64_t ticks = probes::end(self->span, error, self->all_tags());
  if (long_ticks != 0 && ticks >= long_ticks) [[unlikely]] {
    if (!tell_of_long_span(*self, ticks)) return nullptr;
  }
  Py_RETURN_FALSE;
}

PyObject* again(PyObject* object, PyObject*) {
  SpanObject* self = as_span(object);
  PyObject* other = allocate_or_spare(Py_TYPE(object), self->name);
  if (other != nullptr && as_span(other)->name != nullptr) {
    copy_tags(*as_span(other), self->tags, self->tags_size);
  }
  return other;
}

PyObject* decorate(PyObject* object, PyObject* args, PyObject* kwargs) {
  const Ref<> module(PyImport_ImportModule("whence._span"));
  const Ref<> function(module ? PyObject_GetAttrString(module.get(), "decorate") : nullptr);
  const Ref<> bound(function ? PyMethod_New(function.get(), object) : nullptr);
  return bound ? PyObject_Call(bound.get(), args, kwargs) : nullptr;
}

PyObject* repr(PyObject* object) {
  PyObject* name = as_span(object)->name;
  return PyUnicode_FromFormat("whence.span(%R)", name != nullptr ? name : Py_None);
}

PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, "__enter__($self, /)\n--\n\nBegin the span."},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(leave)), METH_FASTCALL,
     "End the span; exceptions pass."},
    {"_again", again, METH_NOARGS, "_again($self, /)\n--\n\nA new span like this one."},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "span(name, /, **tags)\n--\n\n"
         "A stretch of time with a name: a context manager, and a decorator.\n\n"
         "It is put into the recording, if there is one; else it costs next to nothing.\n"
         "Tags are kept if they are None, bool, int, float or str; of others, the type's name.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(decorate)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {},
};

PyType_Spec spec = {"whence.span", sizeof(SpanObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

PyObject* watch_spans(PyObject* module, PyObject* args) {
  unsigned long long nanoseconds;
  PyObject* callback;
  if (!PyArg_ParseTuple(args, "KO", &nanoseconds, &callback)) return nullptr;
  const double ticks =
      static_cast<double>(nanoseconds) / 1e9 * static_cast<double>(base::estimate_frequency());
  long_ticks = callback != Py_None ? static_cast<std::uint64_t>(ticks) + 1 : 0;
  const cpython::Critical critical(module);
  Py_XSETREF(state_of(module).on_long_span, callback != Py_None ? Py_NewRef(callback) : nullptr);
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef span_functions[] = {
    {"watch_spans", watch_spans, METH_VARARGS,
     "watch_spans($module, nanoseconds, callback, /)\n--\n\n"},
    {},
};

PyTypeObject* make_span_type(PyObject* module) noexcept {
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
  if (type != nullptr) type->tp_vectorcall = vectorcall;
  return type;
}

PyObject* make_spare_span(PyTypeObject* type) noexcept {
  PyObject* span = allocate(type, nullptr);
  return span != nullptr ? span : PyErr_NoMemory();
}

}  // namespace whence::module
