// names.cpp: see names.h.
#include "read/names.h"

#include <algorithm>

#include "format/records/code.h"
#include "format/records/info.h"
#include "format/records/string.h"
#include "format/records/task.h"
#include "format/records/thread.h"

namespace whence::read {
namespace {

// A small file may hold much, if it is packed; a hostile one may claim to hold anything.
constexpr std::uint64_t kLeastBudget = 48u << 20;
constexpr std::uint64_t kBudgetPerByte = 16;
// A table entry with its share of the table, and a string object.
constexpr std::size_t kEntryCost = 112;
// A string that grows keeps its old text until the new one is there, and some room for more.
constexpr std::size_t kGrowthCost = 3;

template <class Map>
const typename Map::mapped_type* find(const Map& map, std::uint64_t id) noexcept {
  const auto found = map.find(id);
  return found != map.end() ? &found->second : nullptr;
}

std::int64_t as_signed(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value);
}

}  // namespace

bool Names::fill(const Source& source) {
  budget_ = std::max(kLeastBudget, source.input().size() * kBudgetPerByte);
  Cursor cursor(source, Select::metadata);
  format::Record record;
  Next next;
  while ((next = cursor.next(record)) == Next::record) {
    if (record.kind != nullptr) take(record);
  }
  return next == Next::end;
}

bool Names::afford(std::size_t bytes) noexcept {
  if (bytes > budget_) {
    ++left_out_;
    return false;
  }
  budget_ -= bytes;
  return true;
}

void Names::take(const format::Record& record) {
  const auto& v = record.values;
  switch (record.code) {
    case format::String::kKind.code: return take_string(record, false);
    case format::StringPart::kKind.code: return take_string(record, true);
    case format::Info::kKind.code:
      if (!afford(kEntryCost + record.bytes.size())) return;
      infos_.emplace_back(v[0], std::string(record.bytes.begin(), record.bytes.end()));
      return;
    case format::Code::kKind.code:
      if (!afford(kEntryCost)) return;
      codes_.insert_or_assign(v[0], CodeEntry{v[1], v[2], v[3], v[5], as_signed(v[4])});
      return;
    case format::Stack::kKind.code:
      if (!afford(kEntryCost)) return;
      stacks_.insert_or_assign(v[0], StackEntry{v[1], v[2], as_signed(v[3])});
      return;
    case format::Task::kKind.code:
      if (!afford(kEntryCost)) return;
      tasks_.insert_or_assign(v[1], TaskEntry{v[0], v[2], v[3], v[4]});
      return;
    case format::Thread::kKind.code:
      if (thread(v[1]) != nullptr || !afford(2 * kEntryCost)) return;
      thread_places_.emplace(v[1], threads_.size());
      threads_.push_back({v[1], v[2], v[3], v[0], v[4] != 0, std::nullopt});
      return;
    case format::ThreadName::kKind.code:
      if (ThreadEntry* entry = thread(v[1])) entry->name = v[2];
      return;
    case format::ThreadEnd::kKind.code:
      if (ThreadEntry* entry = thread(v[1])) entry->end_ticks = v[0];
      return;
    default: return;
  }
}

void Names::take_string(const format::Record& record, bool more) {
  const std::size_t size = record.bytes.size();
  if (!afford(kEntryCost + (more ? kGrowthCost * size : size))) return;
  std::string& text = strings_[record.values[0]];
  if (!more) text.clear();
  text.append(reinterpret_cast<const char*>(record.bytes.data()), size);
}

ThreadEntry* Names::thread(std::uint64_t id) noexcept {
  const auto found = thread_places_.find(id);
  return found != thread_places_.end() ? &threads_[found->second] : nullptr;
}

const std::string* Names::string(std::uint64_t id) const noexcept {
  return id != 0 ? find(strings_, id) : nullptr;
}
const CodeEntry* Names::code(std::uint64_t id) const noexcept {
  return find(codes_, id);
}
const StackEntry* Names::stack(std::uint64_t id) const noexcept {
  return find(stacks_, id);
}
const TaskEntry* Names::task(std::uint64_t id) const noexcept {
  return find(tasks_, id);
}

const std::string* Names::info(std::string_view key) const noexcept {
  for (const auto& [id, value] : infos_) {
    const std::string* text = string(id);
    if (text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

}  // namespace whence::read
