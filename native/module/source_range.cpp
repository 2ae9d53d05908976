// source_range.cpp: see source_range.h.
#include "module/source_range.h"

#include "base/hash.h"
#include "cpython/ref.h"
#include "module/handle_types.h"

namespace whence::module {
namespace {

using cpython::Ref;
using handles::kLargestNumber;
using handles::kNone;

SourceRangeObject* as_own(PyObject* object) noexcept {
  return reinterpret_cast<SourceRangeObject*>(object);
}

// False with an error set. None is kNone where that may be.
bool read_number(PyObject* value, const char* what, std::uint32_t least, bool may_be_none,
                 std::uint32_t& number) noexcept {
  if (may_be_none && value == Py_None) return number = kNone, true;
  if (!PyLong_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s must be an int%s, not %.100s", what,
                 may_be_none ? " or None" : "", Py_TYPE(value)->tp_name);
    return false;
  }
  int overflow = 0;
  const long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0 && found >= least && found <= kLargestNumber) {
    number = static_cast<std::uint32_t>(found);
    return true;
  }
  PyErr_Format(PyExc_ValueError, "%s must be from %u to %u, not %.100R", what, least,
               kLargestNumber, value);
  return false;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"filename", "line", "column", "end_line", "end_column", nullptr};
  PyObject *filename, *line, *column = Py_None, *end_line = Py_None, *end_column = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOO:SourceRange", const_cast<char**>(names),
                                   &filename, &line, &column, &end_line, &end_column)) {
    return nullptr;
  }
  handles::Range range{};
  const Ref<> text(exact_text(filename, "filename"));
  if (!text || !read_number(line, "line", 1, false, range.line) ||
      !read_number(column, "column", 0, true, range.column) ||
      !read_number(end_line, "end_line", 1, true, range.end_line) ||
      !read_number(end_column, "end_column", 0, true, range.end_column)) {
    return nullptr;
  }
  if (range.end_line < range.line) {
    return PyErr_Format(PyExc_ValueError, "end_line %u is before line %u", range.end_line,
                        range.line);
  }
  return make_range(type, text.get(), range);
}

void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  Py_DECREF(as_own(object)->filename);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* number_object(std::uint32_t number) noexcept {
  return number == kNone ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(number);
}

template <std::uint32_t SourceRangeObject::* kField>
PyObject* get_number(PyObject* object, void*) {
  return number_object(as_own(object)->*kField);
}

PyObject* get_filename(PyObject* object, void*) {
  return Py_NewRef(as_own(object)->filename);
}

PyObject* repr(PyObject* object) {
  const SourceRangeObject& range = *as_range(object);
  const Ref<> column(number_object(range.column)), end_line(number_object(range.end_line)),
      end_column(number_object(range.end_column));
  if (!column || !end_line || !end_column) return nullptr;
  if (range.end_line != kNone || range.end_column != kNone) {
    return PyUnicode_FromFormat("SourceRange(%R, %u, %R, %R, %R)", range.filename, range.line,
                                column.get(), end_line.get(), end_column.get());
  }
  if (range.column == kNone) {
    return PyUnicode_FromFormat("SourceRange(%R, %u)", range.filename, range.line);
  }
  return PyUnicode_FromFormat("SourceRange(%R, %u, %R)", range.filename, range.line, column.get());
}

Py_hash_t hash(PyObject* object) {
  const auto value = static_cast<Py_hash_t>(hash_range(object));
  return value == -1 ? -2 : value;
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if (!Py_IS_TYPE(b, Py_TYPE(a)) || (operation != Py_EQ && operation != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong(same_range(a, b) == (operation == Py_EQ));
}

PyGetSetDef attributes[] = {
    {"filename", get_filename, nullptr, "The source's name.", nullptr},
    {"line", get_number<&SourceRangeObject::line>, nullptr, "Counts from 1.", nullptr},
    {"column", get_number<&SourceRangeObject::column>, nullptr,
     "Counts from 0, in UTF-8 bytes; None: not known.", nullptr},
    {"end_line", get_number<&SourceRangeObject::end_line>, nullptr, "None: not known.", nullptr},
    {"end_column", get_number<&SourceRangeObject::end_column>, nullptr,
     "The first after the range; None: not known.", nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "SourceRange(filename, line, column=None, end_line=None, end_column=None)\n--\n\n"
         "A place in a source that somebody wrote.\n\n"
         "Lines count from 1 and columns from 0, in UTF-8 bytes, as in whence.Frame;\n"
         "None is what is not known. Immutable, and equal if all fields are.")},
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_getset, attributes},
    {},
};

PyType_Spec spec = {"whence.handles.SourceRange", sizeof(SourceRangeObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

PyObject* make_range(PyTypeObject* type, PyObject* filename, const handles::Range& range) noexcept {
  PyObject* made = type->tp_alloc(type, 0);
  if (made == nullptr) return nullptr;
  SourceRangeObject& object = *as_own(made);
  object.filename = Py_NewRef(filename);
  object.line = range.line;
  object.column = range.column;
  object.end_line = range.end_line;
  object.end_column = range.end_column;
  return made;
}

bool same_text(PyObject* a, PyObject* b) noexcept {
  if (a == b) return true;
  return a != nullptr && b != nullptr && PyUnicode_Compare(a, b) == 0;
}

bool same_range(PyObject* a, PyObject* b) noexcept {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  const SourceRangeObject &left = *as_range(a), &right = *as_range(b);
  return left.line == right.line && left.column == right.column &&
         left.end_line == right.end_line && left.end_column == right.end_column &&
         same_text(left.filename, right.filename);
}

std::uint64_t hash_range(PyObject* range) noexcept {
  const SourceRangeObject& of = *as_range(range);
  const auto filename = static_cast<std::uint64_t>(PyObject_Hash(of.filename));
  const std::uint64_t begin = std::uint64_t{of.line} << 32 | of.column;
  const std::uint64_t end = std::uint64_t{of.end_line} << 32 | of.end_column;
  return base::mix(base::mix(filename, begin), end);
}

PyObject* exact_text(PyObject* argument, const char* what) noexcept {
  if (PyUnicode_CheckExact(argument)) return Py_NewRef(argument);
  if (PyUnicode_Check(argument)) return PyUnicode_FromObject(argument);
  return PyErr_Format(PyExc_TypeError, "%s must be a str, not %.100s", what,
                      Py_TYPE(argument)->tp_name);
}

PyTypeObject* make_range_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace whence::module
