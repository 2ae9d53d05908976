// names.h: what the events of a recording refer to: strings, code, stacks, threads, tasks.
//
// Threads: any, once filled. Allocates: up to a budget that goes with the size of the file; what
// does not fit is counted. Fails by: nullptr for what is not known; std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "read/budget.h"
#include "read/code_entry.h"
#include "read/cursor.h"
#include "read/id_map.h"
#include "read/line_maps.h"
#include "read/stack_entries.h"
#include "read/work_sources.h"

namespace whence::read {

struct ModuleEntry {
  std::uint64_t id, path, build_id;
};
struct SymbolEntry {
  std::uint64_t module, address;       // where it is, innermost first at one address
  std::uint64_t name, filename, line;  // a line of 0 is not known
  std::size_t number;                  // in the order in which they come
};
struct ThreadEntry {
  std::uint64_t id, os_id, name;
  std::uint64_t start_ticks;
  bool known;  // ran before `start_ticks`
  std::optional<std::uint64_t> end_ticks;
};
struct TaskEntry {
  std::uint64_t id;      // in the order in which they were met, without gaps
  std::uint64_t parent;  // an id; 0: none is known
  std::uint64_t name;    // a string, or
  std::uint64_t number;  // what follows "Task-", if it is not 0
  std::uint64_t code;
  std::uint64_t start_ticks;  // when it was met
};
// From `time` on, the number means this task.
struct TaskNumber {
  std::uint64_t number, time, task;
};
// From `time` on, whoever enters the coroutine with this number runs the task.
struct TaskRun {
  std::uint64_t generator, time, order, task;  // in the order of writing, at the same time
};
// At `time`, the thread had exactly these frames open; or, with a level, the frame at that level
// belonged to this generator.
struct ThreadFramesEntry {
  std::uint64_t thread, time, order, what, level;
};

class Names {
 public:
  // False: unpacking asked to stop.
  [[nodiscard]] bool fill(const Source& source);

  [[nodiscard]] const std::string* string(std::uint64_t id) const noexcept;
  [[nodiscard]] const CodeEntry* code(std::uint64_t id) const noexcept;
  [[nodiscard]] const StackEntry* stack(std::uint64_t id) const noexcept {
    return stacks_.find(id);
  }
  [[nodiscard]] const std::vector<ModuleEntry>& modules() const noexcept { return modules_; }
  // visit(module, address) for each native frame; one may come again.
  template <class Visit>
  void for_each_native_frame(Visit&& visit) const {
    stacks_.for_each([&](const StackEntry& stack) {
      if (stack.what == StackEntry::What::native && stack.of != 0) {
        visit(stack.of, static_cast<std::uint64_t>(stack.offset));
      }
    });
  }
  // What is at an address of a module, innermost first; nothing if nobody has looked.
  [[nodiscard]] std::span<const SymbolEntry> symbols(std::uint64_t module,
                                                     std::uint64_t address) const noexcept;
  [[nodiscard]] const ThreadEntry* thread(std::uint64_t id) const noexcept;
  // Numbers of pools, and the strings that name them, as they were told.
  [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pools() const noexcept {
    return pools_;
  }
  // In the order in which they were met.
  [[nodiscard]] const std::vector<ThreadEntry>& threads() const noexcept { return threads_; }
  [[nodiscard]] const std::vector<TaskEntry>& tasks() const noexcept { return tasks_; }
  // The largest number of a thread, as far as metadata and the headers of chunks tell.
  [[nodiscard]] std::uint64_t largest_thread() const noexcept { return largest_thread_; }
  // The id of the task that this number meant at that time; 0: none.
  [[nodiscard]] std::uint64_t task_at(std::uint64_t number, std::uint64_t time) const noexcept;
  // In the order in which they were written.
  [[nodiscard]] const std::vector<TaskRun>& task_runs() const noexcept { return task_runs_; }
  [[nodiscard]] const std::vector<ThreadFramesEntry>& thread_frames() const noexcept {
    return thread_frames_;
  }
  // When calls ceased to be recorded.
  [[nodiscard]] const std::vector<std::uint64_t>& calls_off() const noexcept { return calls_off_; }
  // What lines of generated code came from; files are strings.
  [[nodiscard]] const LineMaps& line_maps() const noexcept { return line_maps_; }
  // Where the work of a handle_event came from; see WorkSources.
  [[nodiscard]] WorkPath path_of(const format::Record& event) const;
  // Is there any such work?
  [[nodiscard]] bool has_work() const noexcept { return has_work_; }
  // The tables of handles, as bytes.
  [[nodiscard]] const std::vector<std::string>& handle_tables() const noexcept {
    return work_.tables();
  }
  // The value of the info with this key; nullptr if there is none.
  [[nodiscard]] const std::string* info(std::string_view key) const noexcept;
  // Entries that the budget had no room for.
  [[nodiscard]] std::uint64_t left_out() const noexcept {
    return budget_.refused() + work_.left_out();
  }

 private:
  void take(const format::Record& record);
  void take_string(const format::Record& record, bool more);
  void take_thread(const format::Record& record);
  void take_task(const format::Record& record);
  void take_calls(const format::Record& record);
  void take_native(const format::Record& record);
  [[nodiscard]] ThreadEntry* find_thread(std::uint64_t id) noexcept;

  Budget budget_;
  std::uint64_t task_base_ = 0;
  std::uint64_t largest_thread_ = 0;
  bool has_work_ = false;
  LineMaps line_maps_;
  mutable WorkSources work_;  // which makes what is asked for
  IdMap<std::string> strings_;
  IdMap<CodeEntry> codes_;
  StackEntries stacks_;
  std::vector<ModuleEntry> modules_;
  std::vector<SymbolEntry> symbols_;  // by module, then address
  IdMap<std::size_t> thread_places_;
  IdMap<std::uint64_t> newest_tasks_;  // their ids, by number
  std::vector<ThreadEntry> threads_;
  std::vector<TaskEntry> tasks_;
  std::vector<TaskNumber> task_numbers_;  // by number, then time
  std::vector<TaskRun> task_runs_;
  std::vector<ThreadFramesEntry> thread_frames_;
  std::vector<std::uint64_t> calls_off_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pools_;
  std::vector<std::pair<std::uint64_t, std::string>> infos_;
};

}  // namespace whence::read
