// handle_files.cpp: tables of handles to bytes and back.
//
// Threads: holders of the GIL. Allocates: the bytes, the columns. Fails by: Python's error.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "cpython/ref.h"
#include "handles/decode.h"
#include "handles/encode.h"
#include "module/handle_columns.h"
#include "module/handle_rows.h"
#include "module/source_range.h"
#include "module/state.h"

namespace whence::module {
namespace {

using cpython::Ref;
using handles::Columns;

PyObject* too_much(const std::length_error& error) noexcept {
  PyErr_SetString(PyExc_OverflowError, error.what());
  return nullptr;
}

// The rows from `first` on. False with an error set.
bool collect(const SnapshotObject& snapshot, std::size_t first, PyObject* top, Columns& columns) {
  Collector collector;
  collector.reserve(snapshot.count - std::min(first, snapshot.count));
  if (!collector.top(top)) return false;
  for (std::size_t at = first; at < snapshot.count; ++at) {
    if (!collector.add(snapshot.recorder->rows[at])) return false;
  }
  columns = collector.finish();
  return true;
}

// The parts that a list names; columns of snapshots are made for the purpose.
class Parts {
 public:
  explicit Parts(const HandleTypes& types) noexcept : types_(types) {}

  // (snapshot or columns, namespace, top), and which row of a snapshot is the first; false with an
  // error set.
  bool add(PyObject* given) {
    PyObject *rows, *name_space, *top;
    Py_ssize_t first = 0;
    if (!PyArg_ParseTuple(given, "OSO|n", &rows, &name_space, &top, &first)) return false;
    handles::Part& part = parts_.emplace_back();
    if (PyBytes_GET_SIZE(name_space) != static_cast<Py_ssize_t>(part.name_space.size())) {
      PyErr_SetString(PyExc_ValueError, "a namespace has 16 bytes");
      return false;
    }
    std::memcpy(part.name_space.data(), PyBytes_AS_STRING(name_space), part.name_space.size());
    if (Py_IS_TYPE(rows, types_.columns)) {
      part.columns = &as_columns(rows)->loaded->columns;
      return true;
    }
    if (!Py_IS_TYPE(rows, types_.snapshot)) {
      PyErr_SetString(PyExc_TypeError, "a part is a snapshot or columns");
      return false;
    }
    auto& made = made_.emplace_back(std::make_unique<Columns>());
    part.columns = made.get();
    return collect(*as_snapshot(rows), first > 0 ? static_cast<std::size_t>(first) : 0, top, *made);
  }

  [[nodiscard]] std::string encode() const { return handles::encode(parts_); }

 private:
  const HandleTypes& types_;
  std::vector<std::unique_ptr<Columns>> made_;
  std::vector<handles::Part> parts_;
};

PyObject* encode_handles(PyObject* module, PyObject* list) try {
  if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "parts are a list");
  Parts parts(state_of(module).handles);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    if (!parts.add(PyList_GET_ITEM(list, i))) return nullptr;
  }
  const std::string bytes = parts.encode();
  return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
} catch (const std::length_error& error) {
  return too_much(error);
}

constexpr const char* name_of(handles::Problem problem) noexcept {
  constexpr const char* kNames[] = {"none", "no_table", "too_new", "cut", "damaged", "twice"};
  return kNames[static_cast<int>(problem)];
}

PyObject* part_object(PyObject* module, handles::LoadedPart& part) {
  const Ref<> columns(make_columns(module, std::move(part.columns)));
  const Ref<> top(columns ? top_of(columns.get()) : nullptr);
  const Ref<> name_space(
      PyBytes_FromStringAndSize(reinterpret_cast<const char*>(part.name_space.data()),
                                static_cast<Py_ssize_t>(part.name_space.size())));
  if (!top || !name_space) return nullptr;
  return PyTuple_Pack(3, columns.get(), name_space.get(), top.get());
}

PyObject* decode_handles(PyObject* module, PyObject* bytes) try {
  if (!PyBytes_Check(bytes)) return PyErr_Format(PyExc_TypeError, "a file is bytes");
  handles::Loaded loaded =
      handles::decode({reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(bytes)),
                       static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))});
  const Ref<> parts(PyList_New(0));
  if (!parts) return nullptr;
  for (handles::LoadedPart& part : loaded.parts) {
    const Ref<> made(part_object(module, part));
    if (!made || PyList_Append(parts.get(), made.get()) < 0) return nullptr;
  }
  return Py_BuildValue("(sKO)", name_of(loaded.problem),
                       static_cast<unsigned long long>(loaded.detail), parts.get());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

// A row from (handle, range, kind, stack, edge), all borrowed; false with an error set.
bool read_row(const HandleTypes& types, PyObject* given, std::int64_t before, HandleRow& row) {
  PyObject *handle, *range, *stack, *edge;
  if (!PyArg_ParseTuple(given, "OOUOO", &handle, &range, &row.kind, &stack, &edge) ||
      !read_handle(handle, row.handle)) {
    return false;
  }
  row.range = range != Py_None ? range : nullptr;
  row.stack = stack != Py_None ? stack : nullptr;
  row.edge = edge != Py_None ? edge : nullptr;
  if (row.handle > before && PyUnicode_CheckExact(row.kind) &&
      (row.range == nullptr || Py_IS_TYPE(row.range, types.range)) &&
      (row.stack == nullptr || Py_IS_TYPE(row.stack, types.call)) &&
      (row.edge == nullptr || PyTuple_CheckExact(row.edge))) {
    return true;
  }
  PyErr_SetString(PyExc_ValueError, "rows have handles that go up, and what issue() takes");
  return false;
}

PyObject* collect_handles(PyObject* module, PyObject* args) try {
  PyObject *list, *top;
  if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &list, &top)) return nullptr;
  Collector collector;
  if (!collector.top(top)) return nullptr;
  HandleRow row{-1, nullptr, nullptr, nullptr, nullptr};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    if (!read_row(state_of(module).handles, PyList_GET_ITEM(list, i), row.handle, row) ||
        !collector.add(row)) {
      return nullptr;
    }
  }
  return make_columns(module, collector.finish());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
} catch (const std::length_error& error) {
  return too_much(error);
}

}  // namespace

PyMethodDef handle_functions[] = {
    {"encode_handles", encode_handles, METH_O, "encode_handles($module, parts, /)\n--\n\n"},
    {"decode_handles", decode_handles, METH_O, "decode_handles($module, data, /)\n--\n\n"},
    {"collect_handles", collect_handles, METH_VARARGS,
     "collect_handles($module, rows, top, /)\n--\n\n"},
    {"skip_handles", skip_handles, METH_O, "skip_handles($module, to, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
