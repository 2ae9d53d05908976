// record_objects.h: what a recording holds, as Python objects.
//
// Threads: holders of the GIL. Allocates: Python objects, and a bounded cache of texts.
// Fails by: an empty Ref with Python's error set; std::bad_alloc.
#pragma once

#include <Python.h>

#include <string_view>
#include <unordered_map>

#include "cpython/ref.h"
#include "format/decode.h"
#include "format/file.h"
#include "read/calls.h"
#include "read/functions.h"
#include "read/lines.h"
#include "read/names.h"
#include "read/spans.h"
#include "read/timeline.h"

namespace whence::module {

// The counts that are not 0, by the names of their reasons.
[[nodiscard]] cpython::Ref<> counts_by_reason(
    std::span<const std::uint64_t, format::kReasons> counts) noexcept;

class RecordObjects {
 public:
  RecordObjects(const read::Names& names, const read::Timeline& timeline) noexcept
      : names_(names), timeline_(timeline) {}

  // The string with this number, or None.
  [[nodiscard]] cpython::Ref<> text(std::uint64_t id);
  // The same for the path of a library.
  [[nodiscard]] cpython::Ref<> path(std::uint64_t id);
  // (kind, thread, time, fields)
  [[nodiscard]] cpython::Ref<> record(const format::Record& record);
  // (name, thread, start, duration, tags, error, open)
  [[nodiscard]] cpython::Ref<> span(const read::Span& span);
  // (name, thread, time, value)
  [[nodiscard]] cpython::Ref<> counter(const format::Record& record);
  // (thread, start, duration, generation, collected, uncollectable)
  [[nodiscard]] cpython::Ref<> collection(const format::Record& record);
  [[nodiscard]] cpython::Ref<> work(const format::Record& record);

  // call_objects.cpp
  // (function, filename, line, start, duration, own, depth, thread, task, entered, left, generator,
  // number, parent, count)
  // (type, kind, time, thread, function, filename, line)
  [[nodiscard]] cpython::Ref<> exception(const read::ExceptionSeen& seen, read::Lines& lines);
  // (id, name, parent, function, start)
  [[nodiscard]] cpython::Ref<> task(const read::TaskEntry& task);
  // (task, awaited)
  // (name, filename, line)
  [[nodiscard]] cpython::Ref<> function(const read::Function& function);
  [[nodiscard]] cpython::Ref<> awaits(const format::Record& record) noexcept;

 private:
  [[nodiscard]] cpython::Ref<> value(const format::Record& record, std::size_t field);
  [[nodiscard]] cpython::Ref<> bytes(const format::Record& record);
  [[nodiscard]] cpython::Ref<> tags(std::span<const std::uint8_t> bytes);
  // Of a code: its qualified name; None if it is not known.
  [[nodiscard]] cpython::Ref<> function(std::uint64_t code);
  [[nodiscard]] PyObject* key(const char* name);  // borrowed

  const read::Names& names_;
  const read::Timeline& timeline_;
  std::unordered_map<std::uint64_t, cpython::Ref<>> texts_;
  std::unordered_map<const char*, cpython::Ref<>> keys_;  // by address: the names of fields
};

// Any bytes become a str: UTF-8 with lone surrogates, else with replacement characters.
[[nodiscard]] cpython::Ref<> decode_text(std::string_view text) noexcept;
// Of a file, as the system has it: os.fsencode() gives the bytes back.
[[nodiscard]] cpython::Ref<> decode_path(std::string_view bytes) noexcept;

}  // namespace whence::module
