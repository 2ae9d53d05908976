// names.h: what the events of a recording refer to: strings, code, stacks, threads, tasks.
//
// Threads: any, once filled. Allocates: up to a budget that goes with the size of the file; what
// does not fit is counted. Fails by: nullptr for what is not known; std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "read/cursor.h"

namespace whence::read {

struct CodeEntry {
  std::uint64_t name, qualname, filename, line_table;  // strings
  std::int64_t first_line;
};
struct StackEntry {
  std::uint64_t parent, code;
  std::int64_t offset;
};
struct ThreadEntry {
  std::uint64_t id, os_id, name;
  std::uint64_t start_ticks;
  bool known;  // ran before `start_ticks`
  std::optional<std::uint64_t> end_ticks;
};
struct TaskEntry {
  std::uint64_t start_ticks, parent, name, code;
};

class Names {
 public:
  // False: unpacking asked to stop.
  [[nodiscard]] bool fill(const Source& source);

  [[nodiscard]] const std::string* string(std::uint64_t id) const noexcept;
  [[nodiscard]] const CodeEntry* code(std::uint64_t id) const noexcept;
  [[nodiscard]] const StackEntry* stack(std::uint64_t id) const noexcept;
  [[nodiscard]] const TaskEntry* task(std::uint64_t id) const noexcept;
  // In the order in which they were met.
  [[nodiscard]] const std::vector<ThreadEntry>& threads() const noexcept { return threads_; }
  // The value of the info with this key; nullptr if there is none.
  [[nodiscard]] const std::string* info(std::string_view key) const noexcept;
  // Entries that the budget had no room for.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  void take(const format::Record& record);
  void take_string(const format::Record& record, bool more);
  [[nodiscard]] bool afford(std::size_t bytes) noexcept;
  [[nodiscard]] ThreadEntry* thread(std::uint64_t id) noexcept;

  std::uint64_t budget_ = 0;
  std::uint64_t left_out_ = 0;
  std::unordered_map<std::uint64_t, std::string> strings_;
  std::unordered_map<std::uint64_t, CodeEntry> codes_;
  std::unordered_map<std::uint64_t, StackEntry> stacks_;
  std::unordered_map<std::uint64_t, TaskEntry> tasks_;
  std::unordered_map<std::uint64_t, std::size_t> thread_places_;
  std::vector<ThreadEntry> threads_;
  std::vector<std::pair<std::uint64_t, std::string>> infos_;
};

}  // namespace whence::read
