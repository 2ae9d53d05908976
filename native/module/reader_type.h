// reader_type.h: _core.Reader, a recording that is being read, and its iterators.
//
// Threads: holders of the GIL, which unpacking may let go meanwhile.
// Allocates: what native/read/ says, and Python objects. Fails by: Python's error.
#pragma once

#include <Python.h>

#include <memory>

#include "module/record_objects.h"
#include "read/names.h"
#include "read/slice.h"
#include "read/source.h"
#include "read/timeline.h"

namespace whence::module {

struct Reading {
  read::Source source;
  read::Names names;
  read::Timeline timeline;
  RecordObjects objects{names, timeline};
  std::unique_ptr<read::Lines> lines;  // once somebody has asked for a place
  read::Opened opened = read::Opened::damaged;

  explicit Reading(const read::Source& from) : source(from) {}
};

struct ReaderObject {
  PyObject_HEAD
  Py_buffer buffer;  // of a recording in memory; `obj` is nullptr if there is none
  PyObject* unpack;
  Reading* reading;  // nullptr once closed, and after a failure
  int busy;          // how many calls are under way: they may run Python
};

[[nodiscard]] inline ReaderObject* as_reader(PyObject* object) noexcept {
  return reinterpret_cast<ReaderObject*>(object);
}

// What is read, or nullptr with an error set if that is not (or no longer) possible.
[[nodiscard]] Reading* reading_of(PyObject* reader) noexcept;

[[nodiscard]] PyTypeObject* make_reader_type(PyObject* module) noexcept;

// reader_iterator.cpp
enum class Yield { records, spans, counters, collections, batches, exceptions, awaits, work };
[[nodiscard]] PyTypeObject* make_reader_iterator_type(PyObject* module) noexcept;
// All heed the deadline of the slice; the rest of it is for those that put calls together.
[[nodiscard]] PyObject* new_reader_iterator(PyTypeObject* type, PyObject* reader, Yield yield,
                                            read::Slice slice);

}  // namespace whence::module
