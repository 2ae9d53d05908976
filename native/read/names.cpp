// names.cpp: see names.h.
#include "read/names.h"

#include <algorithm>
#include <tuple>

#include "format/records/code.h"
#include "format/records/frames.h"
#include "format/records/handle.h"
#include "format/records/info.h"
#include "format/records/line_map.h"
#include "format/records/native.h"
#include "format/records/pool.h"
#include "format/records/string.h"
#include "format/records/task.h"
#include "format/records/thread.h"

namespace whence::read {
namespace {

constexpr std::uint64_t kLeastBudget = 48u << 20;
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

std::pair<std::uint64_t, std::uint64_t> place_of(const SymbolEntry& symbol) noexcept {
  return {symbol.module, symbol.address};
}

}  // namespace

bool Names::fill(const Source& source) {
  budget_ = Budget(kLeastBudget, source.input().size());
  work_.begin(source.input().size());
  task_base_ = source.shifts().task;
  for (const Entry& entry : source.entries()) {
    const std::uint64_t thread = entry.thread + std::uint64_t{source.shifts().thread};
    if (entry.thread != 0) largest_thread_ = std::max(largest_thread_, thread);
  }
  Cursor cursor(source, Select::metadata);
  format::Record record;
  Next next;
  while ((next = cursor.next(record)) == Next::record) {
    if (record.kind != nullptr) take(record);
  }
  stacks_.finish();
  std::ranges::sort(symbols_, {}, [](const SymbolEntry& symbol) {
    return std::tuple(symbol.module, symbol.address, symbol.number);
  });
  work_.finish();
  line_maps_.finish();
  std::sort(task_numbers_.begin(), task_numbers_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.number, a.time, a.task) < std::tie(b.number, b.time, b.task);
  });
  return next == Next::end;
}

void Names::take(const format::Record& record) {
  const auto& v = record.values;
  switch (record.code) {
    case format::String::kKind.code: return take_string(record, false);
    case format::StringPart::kKind.code: return take_string(record, true);
    case format::Info::kKind.code:
      if (!budget_.afford(kEntryCost + record.bytes.size())) return;
      infos_.emplace_back(v[0], std::string(record.bytes.begin(), record.bytes.end()));
      return;
    case format::Code::kKind.code:
      if (!budget_.afford(kEntryCost)) return;
      codes_.insert_or_assign(v[0], CodeEntry{v[1], v[2], v[3], v[5], as_signed(v[4])});
      return;
    case format::Stack::kKind.code:
      if (budget_.afford(kStackCost)) stacks_.add(v[0], {v[1], v[2], as_signed(v[3])});
      return;
    case format::SymbolsAnew::kKind.code: return symbols_.clear();
    case format::NativeStack::kKind.code:
    case format::PythonRun::kKind.code:
    case format::Module::kKind.code:
    case format::Symbol::kKind.code: return take_native(record);
    case format::WorkOn::kKind.code: has_work_ = true; return;
    case format::HandleTable::kKind.code: return work_.add(v[0], record.bytes);
    case format::LineMap::kKind.code: return line_maps_.add(v[0], record.bytes, budget_);
    case format::PoolName::kKind.code:
      if (budget_.afford(kEntryCost)) pools_.emplace_back(v[0], v[1]);
      return;
    case format::Task::kKind.code:
    case format::NumberedTask::kKind.code:
    case format::TaskName::kKind.code: return take_task(record);
    case format::Thread::kKind.code:
    case format::ThreadName::kKind.code:
    case format::ThreadEnd::kKind.code: return take_thread(record);
    case format::ThreadFrames::kKind.code:
    case format::ThreadGenerator::kKind.code:
    case format::CallsOff::kKind.code: return take_calls(record);
    default: return;
  }
}

void Names::take_native(const format::Record& record) {
  using What = StackEntry::What;
  const auto& v = record.values;
  if (record.code == format::NativeStack::kKind.code) {
    if (budget_.afford(kStackCost)) stacks_.add(v[0], {v[1], v[2], as_signed(v[3]), What::native});
  } else if (record.code == format::PythonRun::kKind.code) {
    if (budget_.afford(kStackCost)) stacks_.add(v[0], {v[1], v[2], 0, What::run});
  } else if (!budget_.afford(kEntryCost)) {
    return;
  } else if (record.code == format::Module::kKind.code) {
    modules_.push_back({v[0], v[1], v[2]});
  } else {
    symbols_.push_back({v[0], v[1], v[2], v[3], v[4], symbols_.size()});
  }
}

std::span<const SymbolEntry> Names::symbols(std::uint64_t module,
                                            std::uint64_t address) const noexcept {
  const auto found = std::ranges::equal_range(symbols_, std::pair(module, address), {}, place_of);
  return {found.begin(), found.end()};
}

void Names::take_thread(const format::Record& record) {
  const auto& v = record.values;
  largest_thread_ = std::max(largest_thread_, v[1]);
  ThreadEntry* known = find_thread(v[1]);
  if (record.code != format::Thread::kKind.code) {
    if (known == nullptr) return;
    if (record.code == format::ThreadName::kKind.code) {
      known->name = v[2];
    } else {
      known->end_ticks = v[0];
    }
  } else if (known == nullptr && budget_.afford(2 * kEntryCost)) {
    thread_places_.emplace(v[1], threads_.size());
    threads_.push_back({v[1], v[2], v[3], v[0], v[4] != 0, std::nullopt});
  }
}

void Names::take_task(const format::Record& record) {
  const auto& v = record.values;
  const auto newest = [&](std::uint64_t number) {
    const std::uint64_t* id = number != 0 ? find(newest_tasks_, number) : nullptr;
    return id != nullptr ? *id : 0;
  };
  if (record.code == format::TaskName::kKind.code) {
    if (const std::uint64_t id = newest(v[1])) {
      TaskEntry& task = tasks_[id - task_base_ - 1];
      task.name = v[2];
      task.number = 0;
    }
    return;
  }
  if (!budget_.afford(3 * kEntryCost)) return;
  const bool numbered = record.code == format::NumberedTask::kKind.code;
  const std::uint64_t id = task_base_ + tasks_.size() + 1;
  tasks_.push_back({id, newest(v[2]), numbered ? 0 : v[3], numbered ? v[3] : 0, v[4], v[0]});
  newest_tasks_.insert_or_assign(v[1], id);
  task_numbers_.push_back({v[1], v[0], id});
  task_runs_.push_back({v[5], v[0], task_runs_.size(), id});
}

std::uint64_t Names::task_at(std::uint64_t number, std::uint64_t time) const noexcept {
  const auto after =
      std::upper_bound(task_numbers_.begin(), task_numbers_.end(), std::tie(number, time),
                       [](const auto& wanted, const TaskNumber& one) {
                         return wanted < std::tie(one.number, one.time);
                       });
  if (after == task_numbers_.begin() || (after - 1)->number != number) return 0;
  return (after - 1)->task;
}

void Names::take_calls(const format::Record& record) {
  const auto& v = record.values;
  if (!budget_.afford(kEntryCost)) return;
  if (record.code == format::CallsOff::kKind.code) {
    calls_off_.push_back(v[0]);
  } else if (record.code == format::ThreadFrames::kKind.code) {
    thread_frames_.push_back({v[1], v[0], thread_frames_.size(), v[2], 0});
  } else if (v[2] != 0) {
    thread_frames_.push_back({v[1], v[0], thread_frames_.size(), v[3], v[2]});
  }
}

void Names::take_string(const format::Record& record, bool more) {
  const std::size_t size = record.bytes.size();
  if (!budget_.afford(kEntryCost + (more ? kGrowthCost * size : size))) return;
  std::string& text = strings_[record.values[0]];
  if (!more) text.clear();
  text.append(reinterpret_cast<const char*>(record.bytes.data()), size);
}

ThreadEntry* Names::find_thread(std::uint64_t id) noexcept {
  const auto found = thread_places_.find(id);
  return found != thread_places_.end() ? &threads_[found->second] : nullptr;
}
const ThreadEntry* Names::thread(std::uint64_t id) const noexcept {
  const auto found = thread_places_.find(id);
  return found != thread_places_.end() ? &threads_[found->second] : nullptr;
}

const std::string* Names::string(std::uint64_t id) const noexcept {
  if (id >= WorkSources::kMade) return work_.string(id);
  return id != 0 ? find(strings_, id) : nullptr;
}
const CodeEntry* Names::code(std::uint64_t id) const noexcept {
  return id >= WorkSources::kMade ? work_.code(id) : find(codes_, id);
}

WorkPath Names::path_of(const format::Record& event) const {
  const auto text = [&](std::uint64_t id) {
    const std::string* found = string(id);
    return found != nullptr ? std::string_view(*found) : std::string_view();
  };
  const auto& v = event.values;
  return work_.path({v[1], v[3], as_signed(v[2]), text(v[1]), text(v[3])});
}

const std::string* Names::info(std::string_view key) const noexcept {
  for (const auto& [id, value] : infos_) {
    const std::string* text = string(id);
    if (text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

}  // namespace whence::read
