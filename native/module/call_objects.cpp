// call_objects.cpp: see record_objects.h. Calls, exceptions and tasks.
#include "module/record_objects.h"

namespace whence::module {
namespace {

using cpython::Ref;
using Number = unsigned long long;

// None for 0, which stands for none.
Ref<> number_or_none(std::uint64_t number) noexcept {
  return number != 0 ? Ref<>(PyLong_FromUnsignedLongLong(number)) : Ref<>::borrow(Py_None);
}

}  // namespace

Ref<> RecordObjects::function(std::uint64_t code) {
  const read::CodeEntry* entry = names_.code(code);
  if (entry == nullptr) return Ref<>::borrow(Py_None);
  return text(names_.string(entry->qualname) != nullptr ? entry->qualname : entry->name);
}

Ref<> RecordObjects::exception(const read::ExceptionSeen& seen, read::Lines& lines) {
  const Ref<> type = text(seen.type);
  const Ref<> name = function(seen.code);
  const read::CodeEntry* entry = names_.code(seen.code);
  std::uint64_t filename = entry != nullptr ? entry->filename : 0;
  std::optional<std::int64_t> place = lines.line(seen.code, seen.offset);
  if (const auto sources = names_.line_maps().places(filename, place.value_or(-1));
      !sources.empty()) {
    filename = sources.front().filename;
    place.reset();
    if (sources.front().line >= 0) place = sources.front().line;
  }
  const Ref<> file = text(filename);
  const Ref<> line =
      place.has_value() ? Ref<>(PyLong_FromLongLong(*place)) : Ref<>::borrow(Py_None);
  PyObject* kind = key(seen.handled ? "handled" : "raised");
  if (!type || !name || !file || !line || !kind) return {};
  return Ref<>(Py_BuildValue("OOLIOOO", type.get(), kind,
                             static_cast<long long>(timeline_.at(seen.time)), seen.thread,
                             name.get(), file.get(), line.get()));
}

Ref<> RecordObjects::function(const read::Function& function) {
  const Ref<> name = text(function.name);
  const Ref<> file = text(function.filename);
  const Ref<> line =
      function.line ? Ref<>(PyLong_FromLongLong(*function.line)) : Ref<>::borrow(Py_None);
  if (!name || !file || !line) return {};
  return Ref<>(PyTuple_Pack(3, name.get(), file.get(), line.get()));
}

Ref<> RecordObjects::task(const read::TaskEntry& task) {
  const auto number = static_cast<Number>(task.number);
  const Ref<> name =
      number != 0 ? Ref<>(PyUnicode_FromFormat("Task-%llu", number)) : text(task.name);
  const Ref<> parent = number_or_none(task.parent);
  const Ref<> coroutine = function(task.code);
  if (!name || !parent || !coroutine) return {};
  return Ref<>(Py_BuildValue("KOOOL", static_cast<Number>(task.id), name.get(), parent.get(),
                             coroutine.get(),
                             static_cast<long long>(timeline_.at(task.start_ticks))));
}

Ref<> RecordObjects::awaits(const format::Record& record) noexcept {
  const auto task = [&](std::size_t field) {
    return static_cast<Number>(names_.task_at(record.values[field], record.time));
  };
  return Ref<>(Py_BuildValue("KK", task(1), task(2)));
}

}  // namespace whence::module
