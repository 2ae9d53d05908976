// source_range.h: whence.handles.SourceRange, a place in a source.
//
// Threads: holders of the GIL. Allocates: the object. Fails by: Python's error.
#pragma once

#include <Python.h>

#include <cstdint>

#include "handles/columns.h"

namespace whence::module {

struct SourceRangeObject {
  PyObject_HEAD
  PyObject* filename;    // exactly a str
  std::uint32_t line;    // from 1
  std::uint32_t column;  // this and the others: handles::kNone if not known
  std::uint32_t end_line;
  std::uint32_t end_column;
};

[[nodiscard]] inline const SourceRangeObject* as_range(PyObject* object) noexcept {
  return reinterpret_cast<const SourceRangeObject*>(object);
}

// A new reference. The numbers are those of `range`, its filename counts for nothing.
[[nodiscard]] PyObject* make_range(PyTypeObject* type, PyObject* filename,
                                   const handles::Range& range) noexcept;

// nullptr stands for None.
[[nodiscard]] bool same_range(PyObject* a, PyObject* b) noexcept;
[[nodiscard]] std::uint64_t hash_range(PyObject* range) noexcept;

// Equality of str objects that are exactly that; nullptr equals nullptr.
[[nodiscard]] bool same_text(PyObject* a, PyObject* b) noexcept;
// The argument as exactly a str, a new reference; nullptr with TypeError for what is none.
[[nodiscard]] PyObject* exact_text(PyObject* argument, const char* what) noexcept;

[[nodiscard]] inline PyObject* or_none(PyObject* object) noexcept {
  return Py_NewRef(object != nullptr ? object : Py_None);
}

}  // namespace whence::module
