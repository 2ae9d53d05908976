// call_objects.cpp: see record_objects.h. Calls, exceptions and tasks.
#include "module/record_objects.h"

namespace whence::module {
namespace {

using cpython::Ref;
using Number = unsigned long long;

constexpr const char* kEntered[] = {"call", "resume", "throw", "open"};
constexpr const char* kLeft[] = {"return", "unwind", "yield", "gone", "unstarted", "cut"};

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

Ref<> RecordObjects::filename(std::uint64_t code) {
  const read::CodeEntry* entry = names_.code(code);
  return entry != nullptr ? text(entry->filename) : Ref<>::borrow(Py_None);
}

Ref<> RecordObjects::call(const read::Call& call) {
  const read::CodeEntry* entry = call.native ? nullptr : names_.code(call.code);
  const Ref<> name = call.native ? text(call.name) : function(call.code);
  const Ref<> file = entry != nullptr ? text(entry->filename) : Ref<>::borrow(Py_None);
  const Ref<> line =
      entry != nullptr ? Ref<>(PyLong_FromLongLong(entry->first_line)) : Ref<>::borrow(Py_None);
  const Ref<> task = number_or_none(call.task);
  const Ref<> generator = number_or_none(call.generator);
  const Ref<> parent = number_or_none(call.parent);
  PyObject* entered = key(kEntered[static_cast<std::size_t>(call.entered)]);
  PyObject* left = key(kLeft[static_cast<std::size_t>(call.left)]);
  if (!name || !file || !line || !task || !generator || !parent || !entered || !left) return {};
  return Ref<>(Py_BuildValue(
      "OOOLLLIIOOOOKOK", name.get(), file.get(), line.get(), static_cast<long long>(call.start),
      static_cast<long long>(call.duration), static_cast<long long>(call.own), call.depth,
      call.thread, task.get(), entered, left, generator.get(), static_cast<Number>(call.number),
      parent.get(), static_cast<Number>(call.count)));
}

Ref<> RecordObjects::exception(const read::ExceptionSeen& seen, read::Lines& lines) {
  const Ref<> type = text(seen.type);
  const Ref<> name = function(seen.code);
  const Ref<> file = filename(seen.code);
  const auto found = lines.line(seen.code, seen.offset);
  const Ref<> line = found.has_value() ? Ref<>(PyLong_FromLong(*found)) : Ref<>::borrow(Py_None);
  PyObject* kind = key(seen.handled ? "handled" : "raised");
  if (!type || !name || !file || !line || !kind) return {};
  return Ref<>(Py_BuildValue("OOLIOOO", type.get(), kind,
                             static_cast<long long>(timeline_.at(seen.time)), seen.thread,
                             name.get(), file.get(), line.get()));
}

Ref<> RecordObjects::function(const read::Function& function) {
  const Ref<> name = text(function.name);
  const Ref<> file = text(function.filename);
  const bool has_line = function.filename != 0 || function.line != 0;
  const Ref<> line = has_line ? Ref<>(PyLong_FromLongLong(function.line)) : Ref<>::borrow(Py_None);
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
