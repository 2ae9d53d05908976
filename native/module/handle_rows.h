// handle_rows.h: what a snapshot and loaded columns are asked alike, and rows made into columns.
//
// Threads: holders of the GIL. Allocates: Python objects; handle_rows.cpp, columns.
// Fails by: Python's error; Collector also by std::bad_alloc and std::length_error.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "handles/builder.h"
#include "module/handle_recorder.h"

namespace whence::module {

// A handle as a number; false with an error set. What no handle can be is -1, which no table has.
[[nodiscard]] bool read_handle(PyObject* argument, std::int64_t& handle) noexcept;
// A place before `count`; false with an error set.
[[nodiscard]] bool read_place(PyObject* argument, std::size_t count, std::size_t& place) noexcept;
// None for `none`.
[[nodiscard]] PyObject* place_or_none(std::size_t place, std::size_t none) noexcept;

// Columns from rows, which come in the order of their handles. Calls that came before are found by
// their address: they live as long as the rows do.
class Collector {
 public:
  void reserve(std::size_t rows) { builder_.reserve(rows); }
  // False with an error set, for an edge that is none.
  [[nodiscard]] bool add(const HandleRow& row);
  // None, or a str; false with an error set.
  [[nodiscard]] bool top(PyObject* text);
  [[nodiscard]] handles::Columns finish() noexcept { return builder_.finish(); }

 private:
  [[nodiscard]] std::uint32_t string(PyObject* text);   // kNone for nullptr
  [[nodiscard]] std::string_view utf8(PyObject* text);  // until it is asked again
  [[nodiscard]] std::uint32_t range(PyObject* range);
  [[nodiscard]] std::uint32_t call(PyObject* call);
  [[nodiscard]] bool edge(PyObject* edge);

  handles::Builder builder_;
  // Where strings that were met lately are. Any other is found by what it says: a program may have
  // a million objects of one text.
  struct Lately {
    PyObject* text;
    std::uint32_t place;
  };
  std::array<Lately, 1024> lately_{};
  std::unordered_map<PyObject*, std::uint32_t> calls_;
  std::vector<PyObject*> path_;
  std::vector<std::int64_t> parents_;
  std::string utf8_;
};

}  // namespace whence::module
