// handle_columns.cpp: see handle_columns.h.
#include "module/handle_columns.h"

#include <memory>
#include <new>

#include "cpython/critical.h"
#include "cpython/ref.h"
#include "module/handle_rows.h"
#include "module/inlined_call.h"
#include "module/source_range.h"
#include "module/state.h"

namespace whence::module {
namespace {

using cpython::Ref;
using handles::kNone;

// Makes the objects of one table. All references are borrowed; nullptr with an error set.
class Maker {
 public:
  explicit Maker(const ColumnsObject& object) noexcept
      : types_(state_of(object.module).handles), loaded_(*object.loaded) {}

  PyObject* string(std::uint32_t place) {
    PyObject*& made = kept(loaded_.strings, loaded_.columns.strings.size(), place);
    if (made == nullptr) {
      const std::string_view text = loaded_.columns.strings[place];
      made =
          PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
    }
    return made;
  }

  PyObject* range(std::uint32_t place) {
    PyObject*& made = kept(loaded_.ranges, loaded_.columns.ranges.size(), place);
    if (made == nullptr) {
      const handles::Range& range = loaded_.columns.ranges[place];
      PyObject* filename = string(range.filename);
      if (filename != nullptr) made = make_range(types_.range, filename, range);
    }
    return made;
  }

  // Callees first: down to one that is made, and back.
  PyObject* call(std::uint32_t place) {
    std::vector<std::uint32_t> path;
    PyObject* callee = nullptr;
    for (std::uint32_t at = place; at != kNone; at = loaded_.columns.calls[at].callee) {
      callee = kept(loaded_.calls, loaded_.columns.calls.size(), at);
      if (callee != nullptr) break;
      path.push_back(at);
    }
    for (; !path.empty(); path.pop_back()) {
      callee = make_one(loaded_.columns.calls[path.back()], callee);
      if (callee == nullptr) return nullptr;
      loaded_.calls[path.back()] = callee;
    }
    return callee;
  }

 private:
  static PyObject*& kept(std::vector<PyObject*>& objects, std::size_t size, std::uint32_t place) {
    if (objects.empty()) objects.resize(size);
    return objects[place];
  }

  PyObject* make_one(const handles::Call& call, PyObject* callee) {
    CallFields fields{};
    if (callee != nullptr) fields.callee = as_call(callee);
    fields.function = string(call.function);
    if (fields.function == nullptr) return nullptr;
    if (call.range != kNone && (fields.range = range(call.range)) == nullptr) return nullptr;
    if (call.type != kNone && (fields.type = string(call.type)) == nullptr) return nullptr;
    if (call.instance != kNone && (fields.instance = string(call.instance)) == nullptr) {
      return nullptr;
    }
    return make_call(types_.call, fields);
  }

  const HandleTypes& types_;
  LoadedColumns& loaded_;
};

void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (LoadedColumns* loaded = as_columns(object)->loaded; loaded != nullptr) {
    for (auto* objects : {&loaded->calls, &loaded->ranges, &loaded->strings}) {
      for (PyObject* made : *objects) Py_XDECREF(made);
    }
    delete loaded;
  }
  Py_XDECREF(as_columns(object)->module);
  type->tp_free(object);
  Py_DECREF(type);
}

Py_ssize_t length(PyObject* object) {
  return static_cast<Py_ssize_t>(as_columns(object)->loaded->columns.records.size());
}

PyObject* find(PyObject* object, PyObject* argument) {
  std::int64_t handle;
  if (!read_handle(argument, handle)) return nullptr;
  return place_or_none(as_columns(object)->loaded->columns.find(handle), kNone);
}

PyObject* handle_at(PyObject* object, PyObject* argument) {
  const auto& records = as_columns(object)->loaded->columns.records;
  std::size_t place;
  if (!read_place(argument, records.size(), place)) return nullptr;
  return PyLong_FromLongLong(records[place].handle);
}

// None, or the kind and a tuple of parents; a new reference.
PyObject* edge_object(const handles::Columns& columns, std::size_t record) {
  const handles::Edge* edge = columns.edge_of(static_cast<std::uint32_t>(record));
  if (edge == nullptr) return Py_NewRef(Py_None);
  Ref<> parents(PyTuple_New(edge->parents));
  if (!parents) return nullptr;
  for (std::uint32_t i = 0; i < edge->parents; ++i) {
    PyObject* parent = PyLong_FromLongLong(columns.parents[edge->first_parent + i]);
    if (parent == nullptr) return nullptr;
    PyTuple_SET_ITEM(parents.get(), i, parent);
  }
  return Py_BuildValue("(iO)", static_cast<int>(edge->kind), parents.get());
}

PyObject* record(PyObject* object, PyObject* argument) try {
  const handles::Columns& columns = as_columns(object)->loaded->columns;
  std::size_t place;
  if (!read_place(argument, columns.records.size(), place)) return nullptr;
  const handles::Record& of = columns.records[place];
  Maker maker(*as_columns(object));
  PyObject* range = of.range != kNone ? maker.range(of.range) : Py_None;
  PyObject* kind = range != nullptr ? maker.string(of.kind) : nullptr;
  PyObject* stack = Py_None;
  if (kind != nullptr && of.stack != kNone) stack = maker.call(of.stack);
  if (kind == nullptr || stack == nullptr) return nullptr;
  const Ref<> edge(edge_object(columns, place));
  return edge ? PyTuple_Pack(4, range, kind, stack, edge.get()) : nullptr;
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyMethodDef methods[] = {
    {"find", find, METH_O, "find($self, handle, /)\n--\n\n"},
    {"handle_at", handle_at, METH_O, "handle_at($self, place, /)\n--\n\n"},
    {"record", cpython::one_at_a_time<record>, METH_O, "record($self, place, /)\n--\n\n"},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, methods},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {},
};

PyType_Spec spec = {
    "whence._core.HandleColumns", sizeof(ColumnsObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* make_columns(PyObject* module, handles::Columns&& columns) {
  auto loaded = std::make_unique<LoadedColumns>(std::move(columns));
  PyTypeObject* type = state_of(module).handles.columns;
  PyObject* made = type->tp_alloc(type, 0);
  if (made == nullptr) return nullptr;
  as_columns(made)->module = Py_NewRef(module);
  as_columns(made)->loaded = loaded.release();
  return made;
}

PyObject* top_of(PyObject* columns) {
  const std::uint32_t top = as_columns(columns)->loaded->columns.top;
  if (top == kNone) return Py_NewRef(Py_None);
  return Py_XNewRef(Maker(*as_columns(columns)).string(top));
}

PyTypeObject* make_columns_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace whence::module
