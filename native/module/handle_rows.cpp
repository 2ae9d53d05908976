// handle_rows.cpp: see handle_rows.h.
#include "module/handle_rows.h"

#include "base/text.h"
#include "module/inlined_call.h"
#include "module/source_range.h"

namespace whence::module {

using handles::kNone;

bool read_handle(PyObject* argument, std::int64_t& handle) noexcept {
  if (!PyLong_Check(argument)) {
    PyErr_Format(PyExc_TypeError, "a handle is an int, not %.100s", Py_TYPE(argument)->tp_name);
    return false;
  }
  int overflow = 0;
  handle = PyLong_AsLongLongAndOverflow(argument, &overflow);
  if (overflow != 0 || handle < 0) handle = -1;
  return true;
}

bool read_place(PyObject* argument, std::size_t count, std::size_t& place) noexcept {
  place = PyLong_AsSize_t(argument);
  if (place == static_cast<std::size_t>(-1) && PyErr_Occurred()) return false;
  if (place < count) return true;
  PyErr_SetString(PyExc_IndexError, "there is no record at that place");
  return false;
}

PyObject* place_or_none(std::size_t place, std::size_t none) noexcept {
  return place == none ? Py_NewRef(Py_None) : PyLong_FromSize_t(place);
}

bool Collector::add(const HandleRow& row) {
  builder_.record({row.handle, range(row.range), string(row.kind), call(row.stack)});
  return row.edge == nullptr || edge(row.edge);
}

bool Collector::top(PyObject* text) {
  if (text == Py_None) return true;
  if (!PyUnicode_Check(text)) {
    PyErr_Format(PyExc_TypeError, "top must be a str or None, not %.100s", Py_TYPE(text)->tp_name);
    return false;
  }
  builder_.top(string(text));
  return true;
}

std::uint32_t Collector::string(PyObject* text) {
  if (text == nullptr) return kNone;
  Lately& lately = lately_[reinterpret_cast<std::uintptr_t>(text) / 16 % lately_.size()];
  if (lately.text != text) lately = {text, builder_.string(utf8(text))};
  return lately.place;
}

std::string_view Collector::utf8(PyObject* text) {
  const auto length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
  const void* data = PyUnicode_DATA(text);
  if (PyUnicode_IS_ASCII(text)) return {static_cast<const char*>(data), length};
  const base::UnicodeView view{data, length, static_cast<unsigned>(PyUnicode_KIND(text))};
  utf8_.resize(base::utf8_size(view));
  base::write_utf8(view, reinterpret_cast<std::uint8_t*>(utf8_.data()));
  return utf8_;
}

std::uint32_t Collector::range(PyObject* range) {
  if (range == nullptr) return kNone;
  const SourceRangeObject& of = *as_range(range);
  return builder_.range({string(of.filename), of.line, of.column, of.end_line, of.end_column});
}

// Callees first: down to one that is known, and back.
std::uint32_t Collector::call(PyObject* outermost) {
  std::uint32_t callee = kNone;
  path_.clear();
  for (PyObject* at = outermost; at != nullptr;
       at = reinterpret_cast<PyObject*>(as_call(at)->callee)) {
    if (const auto known = calls_.find(at); known != calls_.end()) {
      callee = known->second;
      break;
    }
    path_.push_back(at);
  }
  for (; !path_.empty(); path_.pop_back()) {
    const InlinedCallObject& call = *as_call(path_.back());
    callee = builder_.call({string(call.function), range(call.range), string(call.type),
                            string(call.instance), callee});
    calls_.emplace(path_.back(), callee);
  }
  return callee;
}

bool Collector::edge(PyObject* edge) {
  int kind;
  PyObject* parents;
  if (!PyArg_ParseTuple(edge, "iO!", &kind, &PyTuple_Type, &parents)) return false;
  bool good = kind >= 0 && kind < static_cast<int>(handles::kEdgeKinds);
  parents_.clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parents); ++i) {
    std::int64_t parent;
    if (!read_handle(PyTuple_GET_ITEM(parents, i), parent)) return false;
    good = good && parent >= 0;
    parents_.push_back(parent);
  }
  if (!good) {
    PyErr_SetString(PyExc_ValueError, "an edge is a kind and handles");
    return false;
  }
  builder_.edge(static_cast<std::uint32_t>(kind), parents_);
  return true;
}

}  // namespace whence::module
