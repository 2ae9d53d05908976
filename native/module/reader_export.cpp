// reader_export.cpp: see reader_tables.h. src/whence/_core.pyi says what each method does.
#include <memory>
#include <new>
#include <utility>

#include "module/busy.h"
#include "module/reader_tables.h"
#include "read/chrome.h"
#include "read/perfetto.h"

namespace whence::module {
namespace {

using cpython::Ref;

constexpr std::uint64_t kLeastBudget = 16u << 20;
constexpr std::size_t kPiece = 1 << 20;  // so much is written at a time

// write(bytes), and nothing is left; false with Python's error set. Signals are heard here.
bool hand_over(std::string& output, PyObject* write) {
  const Ref<> bytes(
      PyBytes_FromStringAndSize(output.data(), static_cast<Py_ssize_t>(output.size())));
  output.clear();
  const Ref<> done(bytes ? PyObject_CallOneArg(write, bytes.get()) : nullptr);
  return done && PyErr_CheckSignals() == 0;
}

bool encode(read::CallReader& reader, read::CallEncoder& encoder, PyObject* write) {
  read::CallStep step;
  for (;;) {
    switch (reader.next(step)) {
      case read::Next::record: encoder.take(step); break;
      case read::Next::end: return hand_over(encoder.output(), write);
      case read::Next::aborted: return false;
    }
    if (encoder.output().size() >= kPiece && !hand_over(encoder.output(), write)) return false;
  }
}

template <class Encoder, class... Arguments>
PyObject* export_with(PyObject* object, PyObject* write, PyObject* bounds, Arguments... arguments) {
  Reading* reading = reading_of(object);
  read::Slice slice;
  if (reading == nullptr || !read_slice(bounds, slice)) return nullptr;
  read::CallReader reader(reading->source, reading->names, reading->timeline, std::move(slice));
  read::Budget budget(kLeastBudget, reading->source.input().size());
  Encoder encoder(reading->names, budget, arguments...);
  const Busy busy(as_reader(object));
  if (!encode(reader, encoder, write)) return nullptr;
  return Py_BuildValue("KN", static_cast<unsigned long long>(reader.left_out()),
                       time_or_none(reader.read_until()));
}

}  // namespace

PyObject* reader_export_perfetto(PyObject* object, PyObject* args) try {
  PyObject *write, *bounds;
  long long start;
  unsigned long long first_track;
  unsigned first_sequence;
  if (!PyArg_ParseTuple(args, "OO!LKI:export_perfetto", &write, &PyTuple_Type, &bounds, &start,
                        &first_track, &first_sequence)) {
    return nullptr;
  }
  return export_with<read::PerfettoCalls>(object, write, bounds, start, first_track,
                                          first_sequence);
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_export_chrome(PyObject* object, PyObject* args) try {
  PyObject *write, *bounds;
  long long start;
  unsigned process;
  if (!PyArg_ParseTuple(args, "OO!LI:export_chrome", &write, &PyTuple_Type, &bounds, &start,
                        &process)) {
    return nullptr;
  }
  return export_with<read::ChromeCalls>(object, write, bounds, start, process);
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

}  // namespace whence::module
