// arrow_stream.cpp: see reader_tables.h.
//
// Whoever takes the stream calls it from any thread, with the GIL or without: it is taken here,
// since unpacking runs Python. Errors of Python's become the text of the stream's last error.
#include <errno.h>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "cpython/critical.h"
#include "module/busy.h"
#include "module/reader_tables.h"
#include "module/state.h"
#include "read/arrow_blocks.h"
#include "read/arrow_calls.h"

namespace whence::module {
namespace {

using cpython::Ref;

constexpr char kCapsule[] = "arrow_array_stream";

class WithGil {
 public:
  WithGil() noexcept : state_(PyGILState_Ensure()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// What a table is of.
struct Kind {
  void (*schema)(ArrowSchema& out);
  std::unique_ptr<read::ArrowTable> (*table)(Reading& reading, const read::Slice& slice);
};

constexpr Kind kCalls = {
    read::export_call_schema,
    [](Reading& r, const read::Slice& slice) -> std::unique_ptr<read::ArrowTable> {
      return std::make_unique<read::ArrowCalls>(r.source, r.names, r.timeline, slice);
    }};
constexpr Kind kBlocks = {
    read::export_block_schema,
    [](Reading& r, const read::Slice& slice) -> std::unique_ptr<read::ArrowTable> {
      return std::make_unique<read::ArrowBlocks>(r.source, r.timeline, slice);
    }};

// The readers of a recording's processes are asked for one after the other.
struct Stream {
  const Kind* kind;
  PyObject* readers;  // an iterator
  PyTypeObject* reader_type;
  read::Slice slice;
  PyObject* reader = nullptr;
  std::unique_ptr<read::ArrowTable> table;  // of it; none: the next one is to be asked for
  std::string error;
  bool running = false;
};

// The error that Python has set, as text.
std::string take_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Ref<> text(value != nullptr ? PyObject_Str(value) : nullptr);
  const char* bytes = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string message = bytes != nullptr ? bytes : "unknown error";
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
  return message;
}

int get_schema(ArrowArrayStream* arrow, ArrowSchema* out) {
  try {
    static_cast<Stream*>(arrow->private_data)->kind->schema(*out);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int fail(Stream& stream, int code) {
  stream.error = take_error();
  return code;
}

// True: there is one. False: there is none, or Python's error is set. What is asked runs Python.
bool next_reader(Stream& stream) {
  Py_CLEAR(stream.reader);
  stream.reader = PyIter_Next(stream.readers);
  if (stream.reader == nullptr) return false;
  if (Py_TYPE(stream.reader) != stream.reader_type) {
    PyErr_SetString(PyExc_TypeError, "readers must be of type Reader");
    return false;
  }
  const cpython::Critical critical(stream.reader);
  Reading* reading = reading_of(stream.reader);
  if (reading == nullptr) return false;
  stream.table = stream.kind->table(*reading, stream.slice);
  return true;
}

int read_batch(Stream& stream, ArrowArray& out) {
  for (;;) {
    if (stream.table == nullptr && !next_reader(stream)) {
      return PyErr_Occurred() ? fail(stream, EINVAL) : 0;
    }
    const cpython::Critical critical(stream.reader);
    if (reading_of(stream.reader) == nullptr) return fail(stream, EINVAL);
    const Busy busy(as_reader(stream.reader));
    const read::Next next = stream.table->next(out);
    if (next == read::Next::record) return 0;
    if (next == read::Next::aborted || !warn_of_part(stream.table->read_until())) {
      return fail(stream, EIO);
    }
    stream.table.reset();
  }
}

int get_next(ArrowArrayStream* arrow, ArrowArray* out) {
  auto& stream = *static_cast<Stream*>(arrow->private_data);
  out->release = nullptr;
  const WithGil gil;
  const cpython::Critical critical(stream.readers);
  if (stream.running) {
    stream.error = "another thread is in this stream";
    return EINVAL;
  }
  stream.running = true;
  int code;
  try {
    code = read_batch(stream, *out);
  } catch (const std::bad_alloc&) {
    if (out->release != nullptr) out->release(out);
    code = ENOMEM;
  }
  stream.running = false;
  return code;
}

const char* get_last_error(ArrowArrayStream* arrow) {
  const auto& stream = *static_cast<Stream*>(arrow->private_data);
  return stream.error.empty() ? nullptr : stream.error.c_str();
}

void release(ArrowArrayStream* arrow) {
  auto* stream = static_cast<Stream*>(arrow->private_data);
  {
    const WithGil gil;
    Py_XDECREF(stream->reader);
    Py_DECREF(stream->readers);
  }
  delete stream;
  arrow->release = nullptr;
}

void forget_capsule(PyObject* capsule) {
  auto* arrow = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (arrow->release != nullptr) arrow->release(arrow);
  delete arrow;
}

PyObject* new_stream(PyObject* module, PyObject* args, const Kind& kind) try {
  PyObject *readers, *bounds;
  auto stream = std::make_unique<Stream>();
  stream->kind = &kind;
  if (!PyArg_ParseTuple(args, "OO!", &readers, &PyTuple_Type, &bounds) ||
      !read_slice(bounds, stream->slice)) {
    return nullptr;
  }
  if (!PyIter_Check(readers)) return PyErr_Format(PyExc_TypeError, "readers must be an iterator");
  stream->reader_type = state_of(module).reader_type;
  stream->readers = readers;
  auto arrow = std::make_unique<ArrowArrayStream>(
      ArrowArrayStream{get_schema, get_next, get_last_error, release, stream.get()});
  PyObject* capsule = PyCapsule_New(arrow.get(), kCapsule, forget_capsule);
  if (capsule == nullptr) return nullptr;
  Py_INCREF(readers);
  static_cast<void>(stream.release());
  static_cast<void>(arrow.release());
  return capsule;
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* arrow_calls(PyObject* module, PyObject* args) {
  return new_stream(module, args, kCalls);
}

PyObject* arrow_blocks(PyObject* module, PyObject* args) {
  return new_stream(module, args, kBlocks);
}

}  // namespace

PyMethodDef arrow_functions[] = {
    {"arrow_calls", arrow_calls, METH_VARARGS, "arrow_calls($module, readers, bounds, /)\n--\n\n"},
    {"arrow_blocks", arrow_blocks, METH_VARARGS,
     "arrow_blocks($module, readers, bounds, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
