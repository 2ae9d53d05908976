// tags.cpp: see tags.h.
#include "module/tags.h"

#include <algorithm>
#include <cstring>

#include "cpython/code.h"
#include "format/tags.h"
#include "probes/name.h"
#include "store/store.h"

namespace whence::module {
namespace {

using format::Tag;
using format::TagType;

constexpr std::size_t kMostBytesOfACharacter = 4;

// Text as UTF-8, cut between two characters.
std::span<const std::uint8_t> encode_text(PyObject* text, std::uint8_t* room) noexcept {
  base::UnicodeView view = cpython::view_text(text);
  view.length = std::min(view.length, format::kLongestText / kMostBytesOfACharacter);
  const std::size_t size = base::utf8_size(view);
  base::write_utf8(view, room);
  return {room, size};
}

Tag make_tag(PyObject* value, std::uint8_t* room) noexcept {
  Tag tag = {};
  if (value == Py_None) {
    tag.type = TagType::none;
  } else if (PyBool_Check(value)) {
    tag.type = value == Py_True ? TagType::yes : TagType::no;
  } else if (PyFloat_Check(value)) {
    tag.type = TagType::real;
    tag.real = PyFloat_AS_DOUBLE(value);
  } else if (PyUnicode_Check(value)) {
    tag.type = TagType::text;
    tag.text = encode_text(value, room);
  } else {
    int overflow = 1;
    const long long number =
        PyLong_Check(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
    tag.type = overflow == 0 ? TagType::integer : TagType::other;
    tag.integer = number;
    if (overflow != 0) {
      const char* name = Py_TYPE(value)->tp_name;
      tag.text = {reinterpret_cast<const std::uint8_t*>(name),
                  std::min(std::strlen(name), format::kLongestText)};
    }
  }
  return tag;
}

}  // namespace

std::size_t encode_tags(PyObject* names, PyObject* const* values, std::uint8_t* out) noexcept {
  std::uint8_t room[format::kLongestText];
  std::uint8_t* next = out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    Tag tag = make_tag(values[i], room);
    const auto left = format::kMostTagBytes - static_cast<std::size_t>(next - out);
    if (tag.text.size() + format::kTagOverhead > left) break;
    tag.key = std::uint64_t{probes::ref_of(PyTuple_GET_ITEM(names, i))} + 1;
    next = format::put_tag(next, tag);
  }
  return static_cast<std::size_t>(next - out);
}

void write_tag_names(std::uint32_t recording, std::span<const std::uint8_t> tags) noexcept {
  format::TagReader reader(tags);
  for (Tag tag; reader.next(tag);) {
    static_cast<void>(store::store().string(recording, static_cast<std::uint32_t>(tag.key - 1)));
  }
}

}  // namespace whence::module
