// reader_iterator.cpp: see reader_type.h. An iterator reads one chunk at a time.
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "cpython/critical.h"
#include "format/records/counter.h"
#include "format/records/gc.h"
#include "format/records/handle.h"
#include "format/records/task.h"
#include "module/reader_tables.h"
#include "module/reader_type.h"
#include "read/call_columns.h"

namespace whence::module {
namespace {

using cpython::Ref;
using read::Next;

// In a batch: 640 KB, which the cache of a core holds and malloc hands out again. Eight times as
// many rows take a fifth longer, in page faults.
constexpr std::size_t kRows = 1 << 13;
constexpr std::uint64_t kLeastBudget = 16u << 20;

// The functions of batches, and a list of them, which grows from batch to batch.
struct Functions {
  read::Budget budget;
  read::Functions table;
  Ref<> list;

  explicit Functions(const Reading& reading)
      : budget(kLeastBudget, reading.source.input().size()),
        table(reading.names, budget),
        list(PyList_New(0)) {}

  [[nodiscard]] bool renew(RecordObjects& objects) {
    if (!list) return false;
    const std::vector<read::Function>& all = table.all();
    for (auto i = static_cast<std::size_t>(PyList_GET_SIZE(list.get())); i < all.size(); ++i) {
      const Ref<> item = objects.function(all[i]);
      if (!item || PyList_Append(list.get(), item.get()) < 0) return false;
    }
    return true;
  }
};

// What an iterator reads with: one of them, by what it yields.
struct Hand {
  std::unique_ptr<read::Cursor> cursor;
  std::unique_ptr<read::SpanReader> spans;
  std::unique_ptr<read::CallReader> calls;  // and exceptions
  std::unique_ptr<read::Lines> lines;       // of exceptions
  std::unique_ptr<Functions> functions;     // of batches

  bool warned = false;  // of a deadline that was over

  Hand(const Reading& reading, Yield yield, read::Slice slice) {
    const read::Source& source = reading.source;
    const auto select = yield == Yield::records ? read::Select::all : read::Select::events;
    switch (yield) {
      case Yield::spans: spans = std::make_unique<read::SpanReader>(source, slice.deadline); break;
      case Yield::batches:
      case Yield::exceptions:
        calls = std::make_unique<read::CallReader>(source, reading.names, reading.timeline,
                                                   std::move(slice));
        break;
      default: cursor = std::make_unique<read::Cursor>(source, select, slice.deadline); break;
    }
    if (yield == Yield::batches) functions = std::make_unique<Functions>(reading);
    if (yield == Yield::exceptions) {
      lines = std::make_unique<read::Lines>(reading.names, source.input().size());
    }
  }

  [[nodiscard]] std::optional<std::int64_t> read_until(const Reading& reading) const noexcept {
    if (calls != nullptr) return calls->read_until();
    const auto ticks = spans != nullptr ? spans->stopped_at() : cursor->stopped_at();
    return ticks.has_value() ? std::optional(reading.timeline.at(*ticks)) : std::nullopt;
  }
};

struct IteratorObject {
  PyObject_HEAD
  PyObject* reader;
  Yield yield;
  bool running;  // unpacking may run other threads
  Hand* hand;
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
    case Yield::work: return record.code == format::HandleEvent::kKind.code;
    case Yield::awaits: return record.code == format::Awaits::kKind.code;
    default: return record.kind != nullptr;
  }
}

Ref<> next_span(IteratorObject& self, Reading& reading) {
  read::Span span;
  if (self.hand->spans->next(span) != Next::record) return {};
  return reading.objects.span(span);
}

// Rows, the columns behind one another, and the functions so far.
Ref<> next_batch(IteratorObject& self, Reading& reading) {
  constexpr std::size_t kSize = kRows * read::CallColumns::kRow;
  Ref<> memory(PyBytes_FromStringAndSize(nullptr, kSize));
  if (!memory) return {};
  const auto columns = read::CallColumns::in(
      reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(memory.get())), kRows);
  Functions& functions = *self.hand->functions;
  std::size_t rows;
  const Next next = read::fill(*self.hand->calls, functions.table, columns, kRows, rows);
  if (next == Next::aborted || rows == 0 || !functions.renew(reading.objects)) return {};
  return Ref<>(Py_BuildValue("nnOO", static_cast<Py_ssize_t>(rows), static_cast<Py_ssize_t>(kRows),
                             memory.get(), functions.list.get()));
}

Ref<> next_exception(IteratorObject& self, Reading& reading) {
  read::ExceptionSeen seen;
  if (self.hand->calls->next(seen) != Next::record) return {};
  return reading.objects.exception(seen, *self.hand->lines);
}

Ref<> next_record(IteratorObject& self, Reading& reading) {
  format::Record record;
  Next next;
  do {
    next = self.hand->cursor->next(record);
  } while (next == Next::record && !wanted(self.yield, record));
  if (next != Next::record) return {};
  switch (self.yield) {
    case Yield::counters: return reading.objects.counter(record);
    case Yield::collections: return reading.objects.collection(record);
    case Yield::work: return reading.objects.work(record);
    case Yield::awaits: return reading.objects.awaits(record);
    default: return reading.objects.record(record);
  }
}

// An empty one without an error is the end.
Ref<> next_item(IteratorObject& self, Reading& reading) {
  switch (self.yield) {
    case Yield::spans: return next_span(self, reading);
    case Yield::batches: return next_batch(self, reading);
    case Yield::exceptions: return next_exception(self, reading);
    default: return next_record(self, reading);
  }
}

PyObject* iterate(PyObject* object) {
  IteratorObject& self = *as_iterator(object);
  const cpython::Critical critical(self.reader);
  Reading* reading = reading_of(self.reader);
  if (reading == nullptr) return nullptr;
  if (self.running) {
    PyErr_SetString(PyExc_ValueError, "another thread is in this iterator");
    return nullptr;
  }
  self.running = true;
  ++as_reader(self.reader)->busy;  // so that what is read stays while unpacking runs Python
  Ref<> made;
  try {
    made = next_item(self, *reading);
    if (!made && !PyErr_Occurred() && !std::exchange(self.hand->warned, true)) {
      static_cast<void>(warn_of_part(self.hand->read_until(*reading)));
    }
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
  delete as_iterator(object)->hand;
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

PyObject* new_reader_iterator(PyTypeObject* type, PyObject* reader, Yield yield,
                              read::Slice slice) {
  Reading* reading = reading_of(reader);
  if (reading == nullptr) return nullptr;
  Ref<> made(type->tp_alloc(type, 0));
  if (!made) return nullptr;
  IteratorObject& self = *as_iterator(made.get());
  self.reader = Py_NewRef(reader);
  self.yield = yield;
  self.hand = new Hand(*reading, yield, std::move(slice));
  return made.release();
}

}  // namespace whence::module
