// reader_names.cpp: see reader_tables.h. What the numbers in a recording stand for.
#include <new>
#include <set>
#include <string>
#include <utility>

#include "module/busy.h"
#include "module/reader_tables.h"
#include "module/reader_type.h"

namespace whence::module {
namespace {

using cpython::Ref;

bool as_id(PyObject* number, std::uint64_t& id) noexcept {
  id = PyLong_AsUnsignedLongLong(number);
  return id != ~std::uint64_t{0} || !PyErr_Occurred();
}

// None for -1, which stands for "not known".
Ref<> known_number(std::int64_t value) noexcept {
  return value >= 0 ? Ref<>(PyLong_FromLongLong(value)) : Ref<>::borrow(Py_None);
}

}  // namespace

PyObject* reader_handle_tables(PyObject* object, PyObject*) {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const Busy busy(as_reader(object));  // a finalizer may close it
  Ref<> list(PyList_New(0));
  if (!list) return nullptr;
  for (const std::string& table : reading->names.handle_tables()) {
    const auto size = static_cast<Py_ssize_t>(table.size());
    const Ref<> item(PyBytes_FromStringAndSize(table.data(), size));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* reader_info(PyObject* object, PyObject* key) {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const char* name = PyUnicode_AsUTF8(key);
  if (name == nullptr) return nullptr;
  const std::string* value = reading->names.info(name);
  return value != nullptr ? decode_text(*value).release() : Py_NewRef(Py_None);
}

PyObject* reader_code(PyObject* object, PyObject* number) try {
  Reading* reading = reading_of(object);
  std::uint64_t id;
  if (reading == nullptr || !as_id(number, id)) return nullptr;
  const read::CodeEntry* entry = reading->names.code(id);
  if (entry == nullptr) Py_RETURN_NONE;
  return Py_BuildValue("NNNL", reading->objects.text(entry->name).release(),
                       reading->objects.text(entry->qualname).release(),
                       reading->objects.text(entry->filename).release(),
                       static_cast<long long>(entry->first_line));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_stack(PyObject* object, PyObject* number) {
  Reading* reading = reading_of(object);
  std::uint64_t id;
  if (reading == nullptr || !as_id(number, id)) return nullptr;
  const read::StackEntry* entry = reading->names.stack(id);
  if (entry == nullptr) Py_RETURN_NONE;
  using What = read::StackEntry::What;
  const auto parent = static_cast<unsigned long long>(entry->parent);
  const auto other = static_cast<unsigned long long>(entry->of);
  if (entry->what == What::run) return Py_BuildValue("KOK", parent, Py_None, other);
  if (entry->what == What::native) {  // -1 less the number of its module, in the place of code
    const Ref<> module(PyLong_FromUnsignedLongLong(other));
    const Ref<> code(module ? PyNumber_Invert(module.get()) : nullptr);
    if (!code) return nullptr;
    return Py_BuildValue("KOL", parent, code.get(), static_cast<long long>(entry->offset));
  }
  return Py_BuildValue("KKL", parent, other, static_cast<long long>(entry->offset));
}

PyObject* reader_modules(PyObject* object, PyObject*) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const Busy busy(as_reader(object));
  Ref<> list(PyList_New(0));
  for (const read::ModuleEntry& module : reading->names.modules()) {
    const Ref<> path = reading->objects.path(module.path);
    const Ref<> build_id = reading->objects.text(module.build_id);
    if (!list || !path || !build_id) return nullptr;
    const Ref<> item(Py_BuildValue("KOO", static_cast<unsigned long long>(module.id), path.get(),
                                   build_id.get()));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_native_frames(PyObject* object, PyObject*) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  const Busy busy(as_reader(object));
  std::set<std::pair<std::uint64_t, std::uint64_t>> frames;
  reading->names.for_each_native_frame(
      [&](std::uint64_t module, std::uint64_t address) { frames.emplace(module, address); });
  Ref<> list(PyList_New(0));
  for (const auto& [module, address] : frames) {
    const Ref<> item(Py_BuildValue("KK", static_cast<unsigned long long>(module),
                                   static_cast<unsigned long long>(address)));
    if (!list || !item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

bool take_symbols(PyObject* list, read::SymbolChunks& symbols) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    unsigned long long module, address, line;
    const char *name, *filename;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "KKyyK", &module, &address, &name, &filename,
                          &line)) {
      return false;
    }
    symbols.add(module, address, name, filename, line);
  }
  return true;
}

PyObject* reader_symbols(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  unsigned long long module, address;
  if (reading == nullptr || !PyArg_ParseTuple(args, "KK", &module, &address)) return nullptr;
  const Busy busy(as_reader(object));
  Ref<> list(PyList_New(0));
  for (const read::SymbolEntry& symbol : reading->names.symbols(module, address)) {
    const Ref<> name = reading->objects.text(symbol.name);
    const Ref<> file = reading->objects.text(symbol.filename);
    if (!list || !name || !file) return nullptr;
    const Ref<> item(
        Py_BuildValue("OOK", name.get(), file.get(), static_cast<unsigned long long>(symbol.line)));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_string(PyObject* object, PyObject* value) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  std::uint64_t id;
  if (!as_id(value, id)) return nullptr;
  return reading->objects.text(id).release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_place(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  unsigned long long code;
  long long offset;
  if (reading == nullptr || !PyArg_ParseTuple(args, "KL", &code, &offset)) return nullptr;
  if (reading->lines == nullptr) {
    reading->lines = std::make_unique<read::Lines>(reading->names, reading->source.input().size());
  }
  const base::Location place = reading->lines->location(code, offset);
  const auto known = [](std::int32_t value) { return known_number(value).release(); };
  return Py_BuildValue("NNNN", known(place.line), known(place.column), known(place.end_line),
                       known(place.end_column));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_sources(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  unsigned long long code;
  long long wanted;
  if (reading == nullptr || !PyArg_ParseTuple(args, "KL", &code, &wanted)) return nullptr;
  const Busy busy(as_reader(object));
  Ref<> list(PyList_New(0));
  const read::CodeEntry* entry = reading->names.code(code);
  if (!list || entry == nullptr) return list.release();
  for (const read::SourcePlace& source :
       reading->names.line_maps().places(entry->filename, wanted)) {
    const Ref<> name = reading->objects.text(source.name);
    const Ref<> file = reading->objects.text(source.filename);
    const Ref<> line = known_number(source.line);
    const Ref<> column = known_number(source.column), end_line = known_number(source.end_line),
                end_column = known_number(source.end_column);
    if (!name || !file || !line || !column || !end_line || !end_column) return nullptr;
    const Ref<> item(Py_BuildValue("OOOOOO", name.get(), file.get(), line.get(), column.get(),
                                   end_line.get(), end_column.get()));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

}  // namespace whence::module
