// call_codes.h: which code is recorded, decided once for each recording and piece of code.
//
// Threads: holders of the GIL. Allocates: at first sight of code. Fails by: code 0, "not known".
//
// A decision is a mark on the code's entry: the number of the recording, and two bits. Code whose
// calls are recorded has neither, which says as well that the recording knows its names.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stacks/code_registry.h"

namespace whence::probes {

// Globs for files and qualified names. What matches none of `include`, if there are any, or one of
// `exclude`, is not recorded.
struct CallFilter {
  std::vector<std::string> include, exclude;
  std::string own;  // the folder of whence itself, whose code is never recorded
};

void set_call_filter(CallFilter filter) noexcept;

inline constexpr std::uint32_t kExcluded = 1;    // not recorded
inline constexpr std::uint32_t kMakesTasks = 2;  // what it returns may be a new task

[[nodiscard]] constexpr std::uint32_t recorded_mark(std::uint32_t recording) noexcept {
  return recording << 2;
}

// From now on what this code returns is looked at, whether it is recorded or not.
void watch_returns(PyCodeObject* code) noexcept;

// The entry, decided for this recording; nullptr if there is no room for it: it is recorded as 0.
[[nodiscard]] stacks::CodeEntry* decided_entry(PyCodeObject* code,
                                               std::uint32_t recording) noexcept;
[[nodiscard]] inline bool is_recorded(const stacks::CodeEntry* entry,
                                      std::uint32_t recording) noexcept {
  return entry == nullptr ||
         (entry->mark.load(std::memory_order_relaxed) & ~kMakesTasks) == recorded_mark(recording);
}
[[nodiscard]] inline bool makes_tasks(const stacks::CodeEntry* entry) noexcept {
  return entry != nullptr && (entry->mark.load(std::memory_order_relaxed) & kMakesTasks) != 0;
}

[[nodiscard]] inline stacks::CodeId id_of(const stacks::CodeEntry* entry) noexcept {
  return entry != nullptr ? entry->id : stacks::kNoCode;
}

}  // namespace whence::probes
