// reader_type.cpp: see reader_type.h. src/whence/_core.pyi says what each method does.
#include "module/reader_type.h"

#include <errno.h>

#include <new>
#include <utility>

#include "cpython/critical.h"
#include "module/busy.h"
#include "module/pack_callbacks.h"
#include "module/reader_tables.h"
#include "module/state.h"
#include "read/rewrite.h"
#include "read/totals.h"

namespace whence::module {
namespace {

using cpython::one_at_a_time;
using cpython::Ref;

// Where in a file a recording lies, and what is added to what it says.
struct Place {
  unsigned long long begin = 0, size = read::Input::kAll;
  long long time = 0;
  unsigned thread = 0;
  unsigned long long task = 0, generator = 0;
};

// Opens what the arguments name; false with Python's error set.
bool open_source(ReaderObject* self, PyObject* from, const Place& place) {
  read::Input input = read::Input::of_memory({});
  if (PyLong_Check(from)) {
    const long file = PyLong_AsLong(from);
    if (file == -1 && PyErr_Occurred()) return false;
    input = read::Input::of_file(static_cast<int>(file), place.begin, place.size);
  } else {
    if (PyObject_GetBuffer(from, &self->buffer, PyBUF_SIMPLE) < 0) return false;
    input = read::Input::of_memory({static_cast<const std::uint8_t*>(self->buffer.buf),
                                    static_cast<std::size_t>(self->buffer.len)});
  }
  const read::Shifts shifts{place.time, place.thread, place.task, place.generator};
  auto reading =
      std::make_unique<Reading>(read::Source(input, {call_unpack, self->unpack}, shifts));
  reading->opened = reading->source.open();
  if (reading->opened == read::Opened::good) {
    reading->timeline = read::Timeline(reading->source);
    if (!reading->names.fill(reading->source)) return false;
  }
  self->reading = reading.release();
  return true;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject *from, *callable;
  if (keywords != nullptr && PyDict_GET_SIZE(keywords) != 0) {
    PyErr_SetString(PyExc_TypeError, "Reader() takes no keyword arguments");
    return nullptr;
  }
  Place place;
  if (!PyArg_ParseTuple(args, "OO|KKLIKK:Reader", &from, &callable, &place.begin, &place.size,
                        &place.time, &place.thread, &place.task, &place.generator)) {
    return nullptr;
  }
  Ref<> made(type->tp_alloc(type, 0));
  if (!made) return nullptr;
  ReaderObject* self = as_reader(made.get());
  self->unpack = Py_NewRef(callable);
  try {
    return open_source(self, from, place) ? made.release() : nullptr;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

void let_go(ReaderObject* self) noexcept {
  delete std::exchange(self->reading, nullptr);
  PyBuffer_Release(&self->buffer);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(as_reader(object)->unpack);
  return 0;
}

// The reading goes with the function that it would call.
int clear(PyObject* object) {
  if (as_reader(object)->busy != 0) return 0;
  let_go(as_reader(object));
  Py_CLEAR(as_reader(object)->unpack);
  return 0;
}

void dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  PyTypeObject* type = Py_TYPE(object);
  static_cast<void>(clear(object));
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* close(PyObject* object, PyObject*) {
  if (as_reader(object)->busy != 0) {
    PyErr_SetString(PyExc_ValueError, "the recording is being read by another thread");
    return nullptr;
  }
  let_go(as_reader(object));
  Py_RETURN_NONE;
}

const char* name_of(read::Opened opened) noexcept {
  switch (opened) {
    case read::Opened::good: return "good";
    case read::Opened::not_a_recording: return "not_a_recording";
    case read::Opened::cut_short: return "cut_short";
    case read::Opened::too_new: return "too_new";
    case read::Opened::damaged: break;
  }
  return "damaged";
}

const char* name_of(const read::Source& source) noexcept {
  if (!source.closing_is_good()) return "damaged";
  switch (source.header().state) {
    case format::FileState::recording: return "recording";
    case format::FileState::closed: return "closed";
    case format::FileState::ended: return "ended";
  }
  return "damaged";
}

PyObject* header(PyObject* object, PyObject*) try {
  Reading* reading = as_reader(object)->reading;
  if (reading == nullptr) {
    static_cast<void>(reading_of(object));
    return nullptr;
  }
  const format::FileHeader& file = reading->source.header();
  const bool good = reading->opened == read::Opened::good;
  const auto duration =
      good ? reading->timeline.since_start(read::last_ticks(reading->source)) : std::int64_t{0};
  return Py_BuildValue(
      "{ss s(ii) sN sI sO sO sI sI sK sK sK sK ss ss si sK sO sL sn sK}", "opened",
      name_of(reading->opened), "version", int{file.major}, int{file.minor}, "file_id",
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(file.file_id.data()),
                                static_cast<Py_ssize_t>(file.file_id.size())),
      "chunk_size", file.chunk_size, "compact", reading->source.compact() ? Py_True : Py_False,
      "closed", reading->source.closed() ? Py_True : Py_False, "clock", file.clock, "pid", file.pid,
      "start_wall", static_cast<unsigned long long>(file.start_wall), "start_monotonic",
      static_cast<unsigned long long>(file.start_monotonic), "max_size",
      static_cast<unsigned long long>(file.max_size), "keep",
      static_cast<unsigned long long>(file.keep), "state", name_of(reading->source), "reason",
      format::reason_name(file.reason), "error", file.error, "size",
      static_cast<unsigned long long>(reading->source.input().size()), "packed",
      reading->source.packed() ? Py_True : Py_False, "duration", static_cast<long long>(duration),
      "chunks", static_cast<Py_ssize_t>(reading->source.entries().size()), "ring_events",
      static_cast<unsigned long long>(good ? reading->source.ring_events() : 0));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* threads(PyObject* object, PyObject*) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const Busy busy(as_reader(object));  // a finalizer may close it
  Ref<> list(PyList_New(0));
  if (!list) return nullptr;
  for (const read::ThreadEntry& thread : reading->names.threads()) {
    const Ref<> name = reading->objects.text(thread.name);
    const auto time = [&](bool known, std::uint64_t ticks) {
      return known ? PyLong_FromLongLong(reading->timeline.at(ticks)) : Py_NewRef(Py_None);
    };
    if (!name) return nullptr;
    const Ref<> item(
        Py_BuildValue("KKONN", static_cast<unsigned long long>(thread.id),
                      static_cast<unsigned long long>(thread.os_id), name.get(),
                      time(!thread.known, thread.start_ticks),
                      time(thread.end_ticks.has_value(), thread.end_ticks.value_or(0))));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* last_ids(PyObject* object, PyObject*) {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const auto& tasks = reading->names.tasks();
  return Py_BuildValue("KK", static_cast<unsigned long long>(reading->names.largest_thread()),
                       static_cast<unsigned long long>(tasks.empty() ? 0 : tasks.back().id));
}

PyObject* tasks(PyObject* object, PyObject*) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const Busy busy(as_reader(object));  // a finalizer may close it
  Ref<> list(PyList_New(0));
  if (!list) return nullptr;
  for (const read::TaskEntry& task : reading->names.tasks()) {
    const Ref<> item = reading->objects.task(task);
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

Ref<> totals_dict(const Reading& reading, const read::Totals& totals) {
  const Ref<> dropped = counts_by_reason(totals.dropped);
  const Ref<> problems(PyList_New(0));
  if (!dropped || !problems) return {};
  for (const read::Problem& problem : totals.problems.list()) {
    const Ref<> item(
        Py_BuildValue("Ks", static_cast<unsigned long long>(problem.offset), problem.what));
    if (!item || PyList_Append(problems.get(), item.get()) < 0) return {};
  }
  using Count = unsigned long long;
  return Ref<>(Py_BuildValue(
      "{sK sK sK sK sK sK sO sK sK sO sK}", "chunks", static_cast<Count>(totals.chunks),
      "chunks_damaged", static_cast<Count>(totals.chunks_damaged), "records",
      static_cast<Count>(totals.records), "unknown", static_cast<Count>(totals.unknown), "produced",
      static_cast<Count>(totals.produced()), "recorded", static_cast<Count>(totals.recorded),
      "dropped", dropped.get(), "names", static_cast<Count>(totals.names_lost), "names_left_out",
      static_cast<Count>(reading.names.left_out()), "problems", problems.get(), "more_problems",
      static_cast<Count>(totals.problems.more())));
}

PyObject* totals(PyObject* object, PyObject*) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  read::Totals counted;
  {
    const Busy busy(as_reader(object));
    counted = read::count(reading->source);
  }
  return counted.aborted ? nullptr : totals_dict(*reading, counted).release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* rewrite(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  int file;
  PyObject* callable;
  PyObject* symbols = nullptr;
  unsigned long long keep;
  int close = 1;
  if (reading == nullptr || !PyArg_ParseTuple(args, "iOK|O!p:rewrite", &file, &callable, &keep,
                                              &PyList_Type, &symbols, &close)) {
    return nullptr;
  }
  read::SymbolChunks added;
  if (symbols != nullptr && !take_symbols(symbols, added)) return nullptr;
  read::RewriteOptions options;
  if (callable != Py_None) options.pack = {call_pack, callable};
  options.keep = keep;
  options.symbols = &added;
  options.close = close != 0;
  read::Rewritten done;
  {
    const Busy busy(as_reader(object));
    done = read::rewrite(reading->source, file, options);
  }
  if (done.aborted) return nullptr;
  if (done.error != 0) {
    errno = done.error;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  return totals_dict(*reading, done.totals).release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

template <Yield kYield>
PyObject* iterate(PyObject* object, PyObject*) try {
  PyObject* module = PyType_GetModule(Py_TYPE(object));
  if (module == nullptr) return nullptr;
  return new_reader_iterator(state_of(module).reader_iterator_type, object, kYield, {});
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

template <Yield kYield>
PyObject* iterate_slice(PyObject* object, PyObject* args) try {
  PyObject* module = PyType_GetModule(Py_TYPE(object));
  read::Slice slice;
  if (module == nullptr || !read_slice(args, slice)) return nullptr;
  return new_reader_iterator(state_of(module).reader_iterator_type, object, kYield,
                             std::move(slice));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyMethodDef methods[] = {
    {"header", one_at_a_time<header>, METH_NOARGS, "header($self, /)\n--\n\n"},
    {"threads", one_at_a_time<threads>, METH_NOARGS, "threads($self, /)\n--\n\n"},
    {"tasks", one_at_a_time<tasks>, METH_NOARGS, "tasks($self, /)\n--\n\n"},
    {"last_ids", one_at_a_time<last_ids>, METH_NOARGS, "last_ids($self, /)\n--\n\n"},
    {"info", one_at_a_time<reader_info>, METH_O, "info($self, key, /)\n--\n\n"},
    {"code", one_at_a_time<reader_code>, METH_O, "code($self, number, /)\n--\n\n"},
    {"stack", one_at_a_time<reader_stack>, METH_O, "stack($self, number, /)\n--\n\n"},
    {"modules", one_at_a_time<reader_modules>, METH_NOARGS, "modules($self, /)\n--\n\n"},
    {"native_frames", one_at_a_time<reader_native_frames>, METH_NOARGS,
     "native_frames($self, /)\n--\n\n"},
    {"symbols", one_at_a_time<reader_symbols>, METH_VARARGS,
     "symbols($self, module, address, /)\n--\n\n"},
    {"totals", one_at_a_time<totals>, METH_NOARGS, "totals($self, /)\n--\n\n"},
    {"rewrite", one_at_a_time<rewrite>, METH_VARARGS,
     "rewrite($self, file, pack, keep, symbols=[], close=True, /)\n--\n\n"},
    {"records", one_at_a_time<iterate<Yield::records>>, METH_NOARGS, "records($self, /)\n--\n\n"},
    {"spans", one_at_a_time<iterate_slice<Yield::spans>>, METH_VARARGS,
     "spans($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"counters", one_at_a_time<iterate_slice<Yield::counters>>, METH_VARARGS,
     "counters($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"handle_events", one_at_a_time<iterate_slice<Yield::work>>, METH_VARARGS,
     "handle_events($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"handle_tables", one_at_a_time<reader_handle_tables>, METH_NOARGS,
     "handle_tables($self, /)\n--\n\n"},
    {"collections", one_at_a_time<iterate_slice<Yield::collections>>, METH_VARARGS,
     "collections($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"exceptions", one_at_a_time<iterate_slice<Yield::exceptions>>, METH_VARARGS,
     "exceptions($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"awaits", one_at_a_time<iterate_slice<Yield::awaits>>, METH_VARARGS,
     "awaits($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"tree", one_at_a_time<reader_tree>, METH_VARARGS,
     "tree($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"batches", one_at_a_time<iterate_slice<Yield::batches>>, METH_VARARGS,
     "batches($self, start=None, end=None, threads=None, deadline=None, /)\n--\n\n"},
    {"export_perfetto", one_at_a_time<reader_export_perfetto>, METH_VARARGS,
     "export_perfetto($self, write, bounds, start, first_track, first_sequence, /)\n--\n\n"},
    {"export_chrome", one_at_a_time<reader_export_chrome>, METH_VARARGS,
     "export_chrome($self, write, bounds, start, process, /)\n--\n\n"},
    {"memory_peak", one_at_a_time<reader_memory_peak>, METH_VARARGS,
     "memory_peak($self, bounds, /)\n--\n\n"},
    {"memory_live", one_at_a_time<reader_memory_live>, METH_VARARGS,
     "memory_live($self, bounds, start, end, at, /)\n--\n\n"},
    {"memory_churn", one_at_a_time<reader_memory_churn>, METH_VARARGS,
     "memory_churn($self, bounds, within, /)\n--\n\n"},
    {"memory_usage", one_at_a_time<reader_memory_usage>, METH_VARARGS,
     "memory_usage($self, bounds, intervals, /)\n--\n\n"},
    {"memory_failures", one_at_a_time<reader_memory_failures>, METH_VARARGS,
     "memory_failures($self, bounds, /)\n--\n\n"},
    {"pools", one_at_a_time<reader_pools>, METH_NOARGS, "pools($self, /)\n--\n\n"},
    {"string", one_at_a_time<reader_string>, METH_O, "string($self, number, /)\n--\n\n"},
    {"memory_history", one_at_a_time<reader_memory_history>, METH_VARARGS,
     "memory_history($self, bounds, address, pool, /)\n--\n\n"},
    {"memory_starts", one_at_a_time<reader_memory_starts>, METH_NOARGS,
     "memory_starts($self, /)\n--\n\n"},
    {"memory_taken", one_at_a_time<reader_memory_taken>, METH_VARARGS,
     "memory_taken($self, bounds, /)\n--\n\n"},
    {"memory_largest", one_at_a_time<reader_memory_largest>, METH_VARARGS,
     "memory_largest($self, bounds, in_use, most, /)\n--\n\n"},
    {"memory_newest", one_at_a_time<reader_memory_newest>, METH_VARARGS,
     "memory_newest($self, bounds, most, /)\n--\n\n"},
    {"memory_segments", one_at_a_time<reader_memory_segments>, METH_VARARGS,
     "memory_segments($self, bounds, most, /)\n--\n\n"},
    {"place", one_at_a_time<reader_place>, METH_VARARGS, "place($self, code, offset, /)\n--\n\n"},
    {"sources", one_at_a_time<reader_sources>, METH_VARARGS,
     "sources($self, code, line, /)\n--\n\n"},
    {"close", one_at_a_time<close>, METH_NOARGS, "close($self, /)\n--\n\n"},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {},
};

PyType_Spec spec = {"whence._core.Reader", sizeof(ReaderObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

Reading* reading_of(PyObject* reader) noexcept {
  Reading* reading = as_reader(reader)->reading;
  if (reading != nullptr && reading->opened == read::Opened::good) return reading;
  PyErr_SetString(PyExc_ValueError,
                  reading == nullptr ? "the recording is closed" : "this is not a recording");
  return nullptr;
}

PyTypeObject* make_reader_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace whence::module
