// handle_snapshot.cpp: _core.HandleSnapshot, the rows that a recorder had at one time.
//
// Threads: holders of the GIL. Allocates: Python objects. Fails by: Python's error.
#include "cpython/ref.h"
#include "module/handle_recorder.h"
#include "module/handle_rows.h"
#include "module/handle_types.h"
#include "module/source_range.h"

namespace whence::module {
namespace {

void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  Py_DECREF(reinterpret_cast<PyObject*>(as_snapshot(object)->recorder));
  type->tp_free(object);
  Py_DECREF(type);
}

Py_ssize_t length(PyObject* object) {
  return static_cast<Py_ssize_t>(as_snapshot(object)->count);
}

PyObject* find(PyObject* object, PyObject* argument) {
  const SnapshotObject& snapshot = *as_snapshot(object);
  std::int64_t handle;
  if (!read_handle(argument, handle)) return nullptr;
  return place_or_none(snapshot.recorder->rows.find(handle, snapshot.count), snapshot.count);
}

PyObject* handle_at(PyObject* object, PyObject* argument) {
  const SnapshotObject& snapshot = *as_snapshot(object);
  std::size_t place;
  if (!read_place(argument, snapshot.count, place)) return nullptr;
  return PyLong_FromLongLong(snapshot.recorder->rows[place].handle);
}

PyObject* record(PyObject* object, PyObject* argument) {
  const SnapshotObject& snapshot = *as_snapshot(object);
  std::size_t place;
  if (!read_place(argument, snapshot.count, place)) return nullptr;
  const HandleRow& row = snapshot.recorder->rows[place];
  return PyTuple_Pack(4, row.range != nullptr ? row.range : Py_None, row.kind,
                      row.stack != nullptr ? row.stack : Py_None,
                      row.edge != nullptr ? row.edge : Py_None);
}

PyMethodDef methods[] = {
    {"find", find, METH_O, "find($self, handle, /)\n--\n\n"},
    {"handle_at", handle_at, METH_O, "handle_at($self, place, /)\n--\n\n"},
    {"record", record, METH_O, "record($self, place, /)\n--\n\n"},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, methods},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {},
};

PyType_Spec spec = {
    "whence._core.HandleSnapshot", sizeof(SnapshotObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyTypeObject* make_snapshot_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace whence::module
