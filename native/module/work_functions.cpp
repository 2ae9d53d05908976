// work_functions.cpp: see work_functions.h; src/whence/_core.pyi says what each does.
#include "module/work_functions.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include "base/line_table.h"
#include "cpython/ref.h"
#include "probes/line_maps.h"
#include "probes/name.h"
#include "probes/work.h"
#include "probes/write_stack.h"

namespace whence::module {
namespace {

using cpython::Ref;

constexpr Py_ssize_t kNamespace = 32;  // hexadecimal digits

bool is_namespace(PyObject* object) noexcept {
  if (!PyUnicode_Check(object) || PyUnicode_GET_LENGTH(object) != kNamespace) return false;
  for (Py_ssize_t i = 0; i < kNamespace; ++i) {
    const Py_UCS4 c = PyUnicode_READ_CHAR(object, i);
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
  }
  return true;
}

// A handle, or a namespace and a handle. `name_space` is borrowed, nullptr for none.
bool read_handle(PyObject* object, PyObject*& name_space, std::int64_t& handle) noexcept {
  name_space = nullptr;
  if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 2) {
    name_space = PyTuple_GET_ITEM(object, 0);
    object = PyTuple_GET_ITEM(object, 1);
    if (!is_namespace(name_space)) {
      PyErr_SetString(PyExc_ValueError, "a namespace is a str of 32 hexadecimal digits");
      return false;
    }
  }
  if (!PyLong_Check(object)) {
    PyErr_Format(PyExc_TypeError, "a handle is an int or (namespace, int), not %.100s",
                 Py_TYPE(object)->tp_name);
    return false;
  }
  int overflow = 0;
  handle = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0 && handle >= -1) return true;
  PyErr_SetString(PyExc_ValueError, "handle must be from -1 to 2**63 - 1");
  return false;
}

// Errors do not show the number: one of thousands of digits cannot be written.
bool read_time(PyObject* object, const char* what, std::uint64_t& time) noexcept {
  if (!PyLong_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s must be an int of time.perf_counter_ns(), not %.100s", what,
                 Py_TYPE(object)->tp_name);
    return false;
  }
  time = PyLong_AsUnsignedLongLong(object);
  if (time != static_cast<std::uint64_t>(-1) || !PyErr_Occurred()) return true;
  PyErr_Format(PyExc_ValueError, "%s must be from 0 to 2**64 - 1, in nanoseconds", what);
  return false;
}

PyObject* handle_event(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"handle", "start", "end", "name", "backend", nullptr};
  PyObject *object, *from, *to, *name, *backend, *name_space;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOUU:event", const_cast<char**>(keywords),
                                   &object, &from, &to, &name, &backend)) {
    return nullptr;
  }
  std::int64_t handle;
  std::uint64_t start, end;
  if (!read_handle(object, name_space, handle) || !read_time(from, "start", start) ||
      !read_time(to, "end", end)) {
    return nullptr;
  }
  if (end < start) {
    PyErr_SetString(PyExc_ValueError, "work ends after it has started: end is less than start");
    return nullptr;
  }
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) Py_RETURN_NONE;
  const Ref<> who(name_space != nullptr ? PyUnicode_FromFormat("%U:%U", name_space, backend)
                                        : PyUnicode_FromFormat(":%U", backend));
  if (!who) return nullptr;
  probes::worked(recording, probes::name_of(recording, who.get()), handle, start, end,
                 probes::name_of(recording, name));
  Py_RETURN_NONE;
}

// Adds the lines of a piece of code to the set of its file.
bool add_lines(PyObject* files, const stacks::CodeFacts& facts) noexcept {
  const Ref<> name(PyUnicode_DecodeUTF8(
      facts.filename.data(), static_cast<Py_ssize_t>(facts.filename.size()), "surrogatepass"));
  const Ref<> made(name ? PySet_New(nullptr) : nullptr);
  PyObject* lines = made ? PyDict_SetDefault(files, name.get(), made.get()) : nullptr;
  if (lines == nullptr) return false;
  bool good = true;
  std::int32_t before = -1;
  base::for_each_line(facts.line_table, facts.first_line, [&](std::int32_t line) {
    if (line == before || !good) return;
    before = line;
    const Ref<> number(PyLong_FromLong(line));
    good = number && PySet_Add(lines, number.get()) == 0;
  });
  return good;
}

PyObject* keep_handles(PyObject*, PyObject* args) {
  PyObject *name_space, *table;
  if (!PyArg_ParseTuple(args, "US:keep_handles", &name_space, &table)) return nullptr;
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) Py_RETURN_FALSE;
  return PyBool_FromLong(
      probes::keep_table(recording, probes::name_of(recording, name_space),
                         {reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(table)),
                          static_cast<std::size_t>(PyBytes_GET_SIZE(table))}));
}

bool read_known(PyObject* object, std::int64_t& value) noexcept {
  value = -1;
  if (object == Py_None) return true;
  value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) return false;
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) value = -1;
  return true;
}

// From a Frame: its name, its file, and where it is in there.
bool read_source(std::uint32_t recording, PyObject* frame, probes::LineSource& source) noexcept {
  PyObject *name, *filename, *line, *column, *end_line, *end_column, *kind;
  if (!PyArg_ParseTuple(frame, "UUOOOOO", &name, &filename, &line, &column, &end_line, &end_column,
                        &kind)) {
    return false;
  }
  source.name = probes::name_of(recording, name);
  source.filename = probes::name_of(recording, filename);
  return read_known(line, source.line) && read_known(column, source.column) &&
         read_known(end_line, source.end_line) && read_known(end_column, source.end_column);
}

PyObject* keep_line_map(PyObject*, PyObject* args) {
  PyObject *filename, *entries;
  if (!PyArg_ParseTuple(args, "UO!:keep_line_map", &filename, &PyList_Type, &entries))
    return nullptr;
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) Py_RETURN_FALSE;
  probes::LineMapWriter writer(probes::name_of(recording, filename));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); ++i) {
    long long line;
    PyObject* frames;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(entries, i), "LO!", &line, &PyTuple_Type, &frames))
      return nullptr;
    probes::LineSource sources[probes::LineMapWriter::kMostSources];
    const std::size_t count =
        std::min(static_cast<std::size_t>(PyTuple_GET_SIZE(frames)), std::size(sources));
    for (std::size_t k = 0; k < count; ++k) {
      PyObject* frame = PyTuple_GET_ITEM(frames, static_cast<Py_ssize_t>(k));
      if (!read_source(recording, frame, sources[k])) return nullptr;
    }
    writer.line(line, std::span(sources, count));
  }
  return PyBool_FromLong(writer.finish());
}

PyObject* recorded_lines(PyObject*, PyObject*) {
  const std::uint32_t recording = store::store().generation();
  const Ref<> files(PyDict_New());
  if (!files) return nullptr;
  bool good = true;
  probes::for_each_code(recording, [&](const stacks::CodeFacts& facts) {
    good = good && add_lines(files.get(), facts);
  });
  return good ? Py_NewRef(files.get()) : nullptr;
}

}  // namespace

PyMethodDef work_functions[] = {
    {"handle_event", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(handle_event)),
     METH_VARARGS | METH_KEYWORDS,
     "handle_event($module, /, handle, start, end, name, backend)\n--\n\n"
     "Put work of a lowered program into the recording, if there is one.\n\n"
     "``handle`` leads back to its source: an int, or (namespace, int). ``start`` and\n"
     "``end`` are of ``time.perf_counter_ns()``; ``name`` is what was run, ``backend`` who\n"
     "ran it."},
    {"keep_handles", keep_handles, METH_VARARGS,
     "keep_handles($module, namespace, table, /)\n--\n\n"},
    {"keep_line_map", keep_line_map, METH_VARARGS,
     "keep_line_map($module, filename, entries, /)\n--\n\n"},
    {"recorded_lines", recorded_lines, METH_NOARGS, "recorded_lines($module, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
