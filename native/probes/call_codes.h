// call_codes.h: which code is recorded, decided once for each recording and piece of code.
//
// Threads: holders of the GIL. Allocates: at first sight of code. Fails by: code 0, "not known".
//
// A decision is a mark on the code's entry: twice the number of the recording if its calls are
// recorded, which says as well that the recording knows its names; one more if they are not.
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

[[nodiscard]] constexpr std::uint32_t recorded_mark(std::uint32_t recording) noexcept {
  return 2 * recording;
}

// The entry, decided for this recording; nullptr if there is no room for it: it is recorded as 0.
[[nodiscard]] stacks::CodeEntry* decided_entry(PyCodeObject* code,
                                               std::uint32_t recording) noexcept;
[[nodiscard]] inline bool is_recorded(const stacks::CodeEntry* entry,
                                      std::uint32_t recording) noexcept {
  return entry == nullptr ||
         entry->mark.load(std::memory_order_relaxed) == recorded_mark(recording);
}

[[nodiscard]] inline stacks::CodeId id_of(const stacks::CodeEntry* entry) noexcept {
  return entry != nullptr ? entry->id : stacks::kNoCode;
}

}  // namespace whence::probes
