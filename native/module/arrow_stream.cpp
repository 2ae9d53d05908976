// arrow_stream.cpp: see reader_tables.h.
//
// Whoever takes the stream calls it from any thread, with the GIL or without: it is taken here,
// since unpacking runs Python. Errors of Python's become the text of the stream's last error.
#include <errno.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "cpython/critical.h"
#include "module/busy.h"
#include "module/reader_tables.h"
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

struct Stream {
  PyObject* reader;
  read::ArrowCalls calls;
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

int get_schema(ArrowArrayStream*, ArrowSchema* out) {
  try {
    read::export_call_schema(*out);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int read_batch(Stream& stream, ArrowArray& out) {
  if (reading_of(stream.reader) == nullptr) {
    stream.error = take_error();
    return EINVAL;
  }
  if (stream.running) {
    stream.error = "another thread is in this stream";
    return EINVAL;
  }
  stream.running = true;
  const Busy busy(as_reader(stream.reader));
  const read::Next next = stream.calls.next(out);
  stream.running = false;
  if (next != read::Next::aborted) return 0;
  stream.error = take_error();
  return EIO;
}

int get_next(ArrowArrayStream* arrow, ArrowArray* out) {
  auto& stream = *static_cast<Stream*>(arrow->private_data);
  out->release = nullptr;
  const WithGil gil;
  const cpython::Critical critical(stream.reader);
  try {
    return read_batch(stream, *out);
  } catch (const std::bad_alloc&) {
    stream.running = false;
    if (out->release != nullptr) out->release(out);
    return ENOMEM;
  }
}

const char* get_last_error(ArrowArrayStream* arrow) {
  const auto& stream = *static_cast<Stream*>(arrow->private_data);
  return stream.error.empty() ? nullptr : stream.error.c_str();
}

void release(ArrowArrayStream* arrow) {
  auto* stream = static_cast<Stream*>(arrow->private_data);
  {
    const WithGil gil;
    Py_DECREF(stream->reader);
  }
  delete stream;
  arrow->release = nullptr;
}

void forget_capsule(PyObject* capsule) {
  auto* arrow = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (arrow->release != nullptr) arrow->release(arrow);
  delete arrow;
}

}  // namespace

PyObject* reader_arrow_calls(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  read::Slice slice;
  if (reading == nullptr || !read_slice(args, slice)) return nullptr;
  std::unique_ptr<Stream> stream(new Stream{
      object, {reading->source, reading->names, reading->timeline, std::move(slice)}, {}});
  auto arrow = std::make_unique<ArrowArrayStream>(
      ArrowArrayStream{get_schema, get_next, get_last_error, release, stream.get()});
  PyObject* capsule = PyCapsule_New(arrow.get(), kCapsule, forget_capsule);
  if (capsule == nullptr) return nullptr;
  Py_INCREF(object);
  static_cast<void>(stream.release());
  static_cast<void>(arrow.release());
  return capsule;
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

}  // namespace whence::module
