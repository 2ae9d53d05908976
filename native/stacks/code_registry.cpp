// code_registry.cpp: see code_registry.h.
#include "stacks/code_registry.h"

#include "base/hash.h"
#include "stacks/store.h"

namespace whence::stacks {
namespace {

void* to_slot(CodeId id) noexcept {
  return reinterpret_cast<void*>(std::uintptr_t{id});
}
CodeId from_slot(void* slot) noexcept {
  return static_cast<CodeId>(reinterpret_cast<std::uintptr_t>(slot));
}

}  // namespace

bool CodeRegistry::attach() noexcept {
  // Another interpreter may have been here before: none of its addresses means anything now.
  epoch_.fetch_add(1, std::memory_order_release);
  return cpython::request_code_slot(&CodeRegistry::died);
}

// CPython calls this for code that was never captured too, with an empty slot, if another tool
// has put something into a slot of its own.
void CodeRegistry::died(void* slot) {
  if (from_slot(slot) == kNoCode) return;
  CodeRegistry& self = store().codes;
  self.deaths_.fetch_add(1, std::memory_order_relaxed);
  self.epoch_.fetch_add(1, std::memory_order_release);
}

CodeId CodeRegistry::id_of(PyCodeObject* code) noexcept {
  const CodeId id = from_slot(cpython::code_slot(code));
  return id != kNoCode ? id : register_code(code);
}

// Without a slot there would be no notice of death, and the id would outlive its code in caches.
CodeId CodeRegistry::register_code(PyCodeObject* code) noexcept {
  const CodeId id = cpython::is_dying(code) ? kNoCode : intern(cpython::view_code(code));
  if (id != kNoCode && cpython::set_code_slot(code, to_slot(id))) return id;
  lost_.fetch_add(1, std::memory_order_relaxed);
  return kNoCode;
}

CodeId CodeRegistry::intern(const cpython::CodeView& view) noexcept {
  base::BytePool& pool = base::names();
  const Entry entry = {pool.intern(view.name), pool.intern(view.qualname),
                       pool.intern(view.filename), pool.intern(view.line_table), view.first_line};
  constexpr auto kNone = base::BytePool::kNone;
  if (entry.name == kNone || entry.qualname == kNone || entry.filename == kNone ||
      entry.line_table == kNone) {
    return kNoCode;
  }
  const base::Holding holding(lock_);
  const std::uint64_t hash = hash_of(entry);
  if (CodeId id = index_.find(hash, [&](CodeId other) { return *entries_.at(other) == entry; })) {
    return id;
  }
  const CodeId id = last_.load(std::memory_order_relaxed) + 1;
  Entry* place = entries_.ensure(id);
  if (place == nullptr) return kNoCode;
  *place = entry;
  last_.store(id, std::memory_order_release);  // before it can be found, as in BytePool::keep
  const auto hash_of_id = [&](CodeId other) { return hash_of(*entries_.at(other)); };
  if (index_.insert(hash, id, hash_of_id)) return id;
  last_.store(id - 1, std::memory_order_release);
  return kNoCode;
}

std::uint64_t CodeRegistry::hash_of(const Entry& entry) noexcept {
  std::uint64_t hash = base::mix(entry.name, entry.qualname);
  hash = base::mix(hash, entry.filename);
  hash = base::mix(hash, entry.line_table);
  return base::mix(hash, static_cast<std::uint32_t>(entry.first_line));
}

CodeFacts CodeRegistry::facts(CodeId id) const noexcept {
  if (id == kNoCode) return {};
  const Entry& entry = *entries_.at(id);
  const base::BytePool& pool = base::names();
  const std::string_view table = pool.get(entry.line_table);
  return {pool.get(entry.name),
          pool.get(entry.qualname),
          pool.get(entry.filename),
          {reinterpret_cast<const std::uint8_t*>(table.data()), table.size()},
          entry.first_line};
}

CodeRegistry::Statistics CodeRegistry::statistics() const noexcept {
  return {last_.load(std::memory_order_acquire), deaths_.load(std::memory_order_relaxed),
          lost_.load(std::memory_order_relaxed),
          entries_.bytes() + index_.bytes() + base::names().bytes()};
}

}  // namespace whence::stacks
