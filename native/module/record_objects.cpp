// record_objects.cpp: see record_objects.h.
#include "module/record_objects.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "format/file.h"
#include "format/records/counter.h"
#include "format/records/gc.h"
#include "format/records/info.h"
#include "format/records/span.h"
#include "format/tags.h"

namespace whence::module {
namespace {

using cpython::Ref;
using format::Field;

// Names are few and short; a file that says otherwise pays with its own time.
constexpr std::size_t kMostTexts = 1 << 16;
constexpr std::size_t kLongestKept = 256;

std::string_view as_text(std::span<const std::uint8_t> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Ref<> signed_number(std::uint64_t value) noexcept {
  return Ref<>(PyLong_FromLongLong(static_cast<std::int64_t>(value)));
}

Ref<> tag_value(const format::Tag& tag) noexcept {
  switch (tag.type) {
    case format::TagType::none: return Ref<>::borrow(Py_None);
    case format::TagType::no: return Ref<>::borrow(Py_False);
    case format::TagType::yes: return Ref<>::borrow(Py_True);
    case format::TagType::integer: return Ref<>(PyLong_FromLongLong(tag.integer));
    case format::TagType::real: return Ref<>(PyFloat_FromDouble(tag.real));
    case format::TagType::text: return decode_text(as_text(tag.text));
    case format::TagType::other: break;
  }
  const Ref<> type = decode_text(as_text(tag.text));
  return type ? Ref<>(PyUnicode_FromFormat("<%U>", type.get())) : Ref<>();
}

}  // namespace

Ref<> decode_text(std::string_view text) noexcept {
  const auto size = static_cast<Py_ssize_t>(text.size());
  Ref<> decoded(PyUnicode_DecodeUTF8(text.data(), size, "surrogatepass"));
  if (decoded || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return decoded;
  PyErr_Clear();
  return Ref<>(PyUnicode_DecodeUTF8(text.data(), size, "replace"));
}

Ref<> decode_path(std::string_view bytes) noexcept {
  return Ref<>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

Ref<> counts_by_reason(std::span<const std::uint64_t, format::kReasons> counts) noexcept {
  Ref<> dict(PyDict_New());
  for (std::size_t i = 0; dict && i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const Ref<> count(PyLong_FromUnsignedLongLong(counts[i]));
    const char* name = format::reason_name(static_cast<format::Reason>(i));
    if (!count || PyDict_SetItemString(dict.get(), name, count.get()) < 0) return {};
  }
  return dict;
}

Ref<> RecordObjects::text(std::uint64_t id) {
  const auto cached = texts_.find(id);
  if (cached != texts_.end()) return Ref<>::borrow(cached->second.get());
  const std::string* bytes = names_.string(id);
  if (bytes == nullptr) return Ref<>::borrow(Py_None);
  Ref<> decoded = decode_text(*bytes);
  if (decoded && bytes->size() <= kLongestKept) {
    if (texts_.size() >= kMostTexts) texts_.clear();
    texts_.emplace(id, Ref<>::borrow(decoded.get()));
  }
  return decoded;
}

Ref<> RecordObjects::path(std::uint64_t id) {
  const std::string* bytes = names_.string(id);
  return bytes != nullptr ? decode_path(*bytes) : Ref<>::borrow(Py_None);
}

PyObject* RecordObjects::key(const char* name) {
  auto [found, is_new] = keys_.try_emplace(name);
  if (is_new) found->second = Ref<>(PyUnicode_InternFromString(name));
  return found->second.get();
}

Ref<> RecordObjects::tags(std::span<const std::uint8_t> bytes) {
  Ref<> dict(PyDict_New());
  format::TagReader reader(bytes);
  format::Tag tag;
  while (dict && reader.next(tag)) {
    const Ref<> name = text(tag.key);
    const Ref<> value = tag_value(tag);
    if (!name || !value || PyDict_SetItem(dict.get(), name.get(), value.get()) < 0) return {};
  }
  return dict;
}

Ref<> RecordObjects::bytes(const format::Record& record) {
  if (record.code == format::SpanTags::kKind.code) return tags(record.bytes);
  if (record.code == format::Info::kKind.code) return decode_text(as_text(record.bytes));
  const std::string_view text = as_text(record.bytes);
  return Ref<>(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

Ref<> RecordObjects::value(const format::Record& record, std::size_t field) {
  const std::uint64_t raw = record.values[field];
  switch (record.kind->fields[field].type) {
    case Field::signed_: return signed_number(raw);
    case Field::real: return Ref<>(PyFloat_FromDouble(std::bit_cast<double>(raw)));
    case Field::duration: return Ref<>(PyLong_FromLongLong(timeline_.lasted(record.time, raw)));
    case Field::string: return text(raw);
    case Field::reason:
      return Ref<>(PyUnicode_FromString(raw < format::kReasons
                                            ? format::reason_name(static_cast<format::Reason>(raw))
                                            : "unknown"));
    case Field::bytes: return bytes(record);
    default: return Ref<>(PyLong_FromUnsignedLongLong(raw));
  }
}

Ref<> RecordObjects::record(const format::Record& record) {
  Ref<> fields(PyDict_New());
  const std::size_t count = record.kind->count();
  for (std::size_t i = 0; fields && i < count; ++i) {
    if (record.kind->fields[i].type == Field::time) continue;
    PyObject* name = key(record.kind->fields[i].name);
    const Ref<> made = value(record, i);
    if (!name || !made || PyDict_SetItem(fields.get(), name, made.get()) < 0) return {};
  }
  PyObject* kind = key(record.kind->name);
  if (!fields || !kind) return {};
  return Ref<>(Py_BuildValue("OILO", kind, record.thread,
                             static_cast<long long>(timeline_.at(record.time)), fields.get()));
}

Ref<> RecordObjects::span(const read::Span& span) {
  const Ref<> name = text(span.name);
  const Ref<> tag_dict =
      tags({reinterpret_cast<const std::uint8_t*>(span.tags.data()), span.tags.size()});
  if (!name || !tag_dict) return {};
  const auto start = static_cast<long long>(timeline_.at(span.start_ticks));
  PyObject* error = span.error ? Py_True : Py_False;
  if (span.open) {
    return Ref<>(Py_BuildValue("OILOOOO", name.get(), span.thread, start, Py_None, tag_dict.get(),
                               error, Py_True));
  }
  const auto duration =
      static_cast<long long>(timeline_.lasted(span.end_ticks, span.end_ticks - span.start_ticks));
  return Ref<>(Py_BuildValue("OILLOOO", name.get(), span.thread, start, duration, tag_dict.get(),
                             error, Py_False));
}

Ref<> RecordObjects::counter(const format::Record& record) {
  const Ref<> name = text(record.values[1]);
  const Ref<> number = value(record, 2);
  if (!name || !number) return {};
  return Ref<>(Py_BuildValue("OILO", name.get(), record.thread,
                             static_cast<long long>(timeline_.at(record.time)), number.get()));
}

Ref<> RecordObjects::collection(const format::Record& record) {
  const auto& v = record.values;
  const auto duration = static_cast<long long>(timeline_.lasted(record.time, v[4]));
  const auto start =
      static_cast<long long>(timeline_.at(record.time - std::min(v[4], record.time)));
  return Ref<>(
      Py_BuildValue("ILLKKK", record.thread, start, duration, static_cast<unsigned long long>(v[1]),
                    static_cast<unsigned long long>(v[2]), static_cast<unsigned long long>(v[3])));
}

Ref<> RecordObjects::work(const format::Record& record) {
  const auto& v = record.values;
  const std::string* told = names_.string(v[1]);
  const read::Backend backend = read::split_backend(told != nullptr ? *told : std::string_view());
  const Ref<> name_space =
      backend.name_space.empty() ? Ref<>::borrow(Py_None) : decode_text(backend.name_space);
  const Ref<> who = told != nullptr ? decode_text(backend.name) : Ref<>::borrow(Py_None);
  const Ref<> name = text(v[3]);
  if (!name_space || !who || !name) return {};
  // A file may say any length of time.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const auto duration = static_cast<long long>(std::min(v[5], kMost));
  const auto ago = static_cast<std::int64_t>(std::min(v[4], kMost / 2) + std::min(v[5], kMost / 2));
  std::int64_t start;
  if (__builtin_sub_overflow(timeline_.at(record.time), ago, &start)) {
    start = std::numeric_limits<std::int64_t>::min();
  }
  return Ref<>(Py_BuildValue("OLOOILL", name_space.get(), static_cast<long long>(v[2]), name.get(),
                             who.get(), record.thread, static_cast<long long>(start), duration));
}

}  // namespace whence::module
