// reader_iterator.cpp: see reader_type.h. An iterator reads one chunk at a time.
#include <new>

#include "format/records/counter.h"
#include "format/records/gc.h"
#include "module/reader_type.h"

namespace whence::module {
namespace {

using cpython::Ref;
using read::Next;

struct IteratorObject {
  PyObject_HEAD
  PyObject* reader;
  Yield yield;
  bool running;  // unpacking may run other threads
  read::Cursor* cursor;
  read::SpanReader* spans;
};

IteratorObject* as_iterator(PyObject* object) noexcept {
  return reinterpret_cast<IteratorObject*>(object);
}

bool wanted(Yield yield, const format::Record& record) noexcept {
  switch (yield) {
    case Yield::counters:
      return record.code == format::Counter::kKind.code ||
             record.code == format::RealCounter::kKind.code;
    case Yield::collections: return record.code == format::GcEnd::kKind.code;
    default: return record.kind != nullptr;
  }
}

Ref<> next_span(IteratorObject& self, Reading& reading, Next& next) {
  read::Span span;
  next = self.spans->next(span);
  return next == Next::record ? reading.objects.span(span) : Ref<>();
}

Ref<> next_record(IteratorObject& self, Reading& reading, Next& next) {
  format::Record record;
  do {
    next = self.cursor->next(record);
  } while (next == Next::record && !wanted(self.yield, record));
  if (next != Next::record) return {};
  switch (self.yield) {
    case Yield::counters: return reading.objects.counter(record);
    case Yield::collections: return reading.objects.collection(record);
    default: return reading.objects.record(record);
  }
}

PyObject* iterate(PyObject* object) {
  IteratorObject& self = *as_iterator(object);
  Reading* reading = reading_of(self.reader);
  if (reading == nullptr) return nullptr;
  if (self.running) {
    PyErr_SetString(PyExc_ValueError, "another thread is in this iterator");
    return nullptr;
  }
  self.running = true;
  ++as_reader(self.reader)->busy;  // so that what is read stays while unpacking runs Python
  Next next = Next::end;
  Ref<> made;
  try {
    made = self.yield == Yield::spans ? next_span(self, *reading, next)
                                      : next_record(self, *reading, next);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  --as_reader(self.reader)->busy;
  self.running = false;
  return made.release();
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(as_iterator(object)->reader);
  return 0;
}

void dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  PyTypeObject* type = Py_TYPE(object);
  delete as_iterator(object)->cursor;
  delete as_iterator(object)->spans;
  Py_XDECREF(as_iterator(object)->reader);
  type->tp_free(object);
  Py_DECREF(type);
}

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(iterate)},
    {},
};

PyType_Spec spec = {"whence._core.ReaderIterator", sizeof(IteratorObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyTypeObject* make_reader_iterator_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

PyObject* new_reader_iterator(PyTypeObject* type, PyObject* reader, Yield yield) noexcept {
  Reading* reading = reading_of(reader);
  if (reading == nullptr) return nullptr;
  Ref<> made(type->tp_alloc(type, 0));
  if (!made) return nullptr;
  IteratorObject& self = *as_iterator(made.get());
  self.reader = Py_NewRef(reader);
  self.yield = yield;
  const auto select = yield == Yield::records ? read::Select::all : read::Select::events;
  if (yield == Yield::spans) {
    self.spans = new (std::nothrow) read::SpanReader(reading->source);
  } else {
    self.cursor = new (std::nothrow) read::Cursor(reading->source, select);
  }
  if (self.spans == nullptr && self.cursor == nullptr) return PyErr_NoMemory();
  return made.release();
}

}  // namespace whence::module
