// reader_blocks.cpp: see reader_tables.h. src/whence/_core.pyi says what each method does.
#include <new>

#include "module/memory_answers.h"
#include "module/reader_tables.h"
#include "read/largest_blocks.h"
#include "read/live_segments.h"
#include "read/memory_taken.h"
#include "read/newest_events.h"

namespace whence::module {
namespace {

using cpython::Ref;

// The rows as they are in memory: numbers of 64 bits, one after the other.
template <class Row>
PyObject* bytes_of(const std::vector<Row>& rows) noexcept {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(rows.data()),
                                   static_cast<Py_ssize_t>(rows.size() * sizeof(Row)));
}

}  // namespace

PyObject* reader_memory_starts(PyObject* object, PyObject*) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const Busy busy(as_reader(object));
  const auto starts = read::memory_starts(reading->source, reading->timeline);
  if (!starts.has_value()) return nullptr;
  return list_of(*starts, [](std::int64_t time) { return PyLong_FromLongLong(time); }).release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_memory_taken(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject* bounds;
  read::Slice slice;
  if (reading == nullptr || !PyArg_ParseTuple(args, "O!", &PyTuple_Type, &bounds) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  read::TakenGroups taken(reading->source, reading->timeline, slice);
  if (!run(object, taken)) return nullptr;
  return result(rows(taken.groups()), taken.replay());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_memory_largest(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject* bounds;
  int in_use;
  Py_ssize_t most;
  read::Slice slice;
  if (reading == nullptr ||
      !PyArg_ParseTuple(args, "O!pn", &PyTuple_Type, &bounds, &in_use, &most) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  using Which = read::LargestBlocks::Which;
  read::LargestBlocks largest(reading->source, reading->timeline, slice,
                              in_use ? Which::in_use : Which::taken,
                              most > 0 ? static_cast<std::size_t>(most) : 0);
  if (!run(object, largest)) return nullptr;
  Ref<> answer(Py_BuildValue("NKK", bytes_of(largest.blocks()), Number{largest.left_out()},
                             Number{largest.bytes_left_out()}));
  return result(std::move(answer), largest.replay());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

namespace {

// A query of the events or segments of a slice, as many as there may be.
template <class Query, class Answer>
PyObject* ask_for_most(PyObject* object, PyObject* args, Answer&& answer) try {
  Reading* reading = reading_of(object);
  PyObject* bounds;
  Py_ssize_t most;
  read::Slice slice;
  if (reading == nullptr || !PyArg_ParseTuple(args, "O!n", &PyTuple_Type, &bounds, &most) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  Query query(reading->source, reading->timeline, slice,
              most > 0 ? static_cast<std::size_t>(most) : 0);
  if (!run(object, query)) return nullptr;
  return result(Ref<>(answer(query)), query.replay());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

}  // namespace

PyObject* reader_memory_newest(PyObject* object, PyObject* args) {
  return ask_for_most<read::NewestEvents>(object, args, [](const read::NewestEvents& newest) {
    return Py_BuildValue("NK", bytes_of(newest.events()), Number{newest.left_out()});
  });
}

PyObject* reader_memory_segments(PyObject* object, PyObject* args) {
  return ask_for_most<read::LiveSegments>(
      object, args, [](const read::LiveSegments& live) { return bytes_of(live.segments()); });
}

}  // namespace whence::module
