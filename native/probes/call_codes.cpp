// call_codes.cpp: see call_codes.h.
#include "probes/call_codes.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "probes/write_stack.h"
#include "stacks/store.h"

namespace whence::probes {
namespace {

CallFilter filter;  // guarded by the GIL

bool matches(const std::vector<std::string>& patterns, const std::string& filename,
             const std::string& qualname) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), filename.c_str(), 0) == 0 ||
           fnmatch(pattern.c_str(), qualname.c_str(), 0) == 0;
  });
}

bool is_wanted(const stacks::CodeFacts& facts) {
  if (!filter.own.empty() && facts.filename.starts_with(filter.own)) return false;
  if (filter.include.empty() && filter.exclude.empty()) return true;
  const std::string filename(facts.filename);
  const std::string qualname(facts.qualname);
  return !matches(filter.exclude, filename, qualname) &&
         (filter.include.empty() || matches(filter.include, filename, qualname));
}

}  // namespace

void set_call_filter(CallFilter wanted) noexcept {
  filter = std::move(wanted);
}

stacks::CodeEntry* decided_entry(PyCodeObject* code, std::uint32_t recording) noexcept {
  stacks::CodeRegistry& codes = stacks::store().codes;
  stacks::CodeEntry* entry = codes.entry_of(code);
  if (entry == nullptr) return nullptr;
  const std::uint32_t mark = entry->mark.load(std::memory_order_relaxed);
  constexpr std::uint32_t kBits = kExcluded | kMakesTasks;
  if ((mark & ~kBits) == recorded_mark(recording)) return entry;
  const bool wanted = is_wanted(codes.facts(entry->id));
  if (wanted) write_code(recording, *entry);
  entry->mark.store(recorded_mark(recording) | (mark & kMakesTasks) | (wanted ? 0 : kExcluded),
                    std::memory_order_relaxed);
  return entry;
}

void watch_returns(PyCodeObject* code) noexcept {
  stacks::CodeEntry* entry = stacks::store().codes.entry_of(code);
  if (entry != nullptr) entry->mark.fetch_or(kMakesTasks, std::memory_order_relaxed);
}

}  // namespace whence::probes
