// code_registry.cpp: see code_registry.h.
#include "stacks/code_registry.h"

#include "base/hash.h"
#include "base/ours.h"
#include "stacks/store.h"

namespace whence::stacks {
namespace {

bool same_code(const CodeEntry& a, const CodeEntry& b) noexcept {
  return a.name == b.name && a.qualname == b.qualname && a.filename == b.filename &&
         a.line_table == b.line_table && a.first_line == b.first_line && a.suspends == b.suspends;
}

}  // namespace

bool CodeRegistry::attach() noexcept {
  // Another interpreter may have been here before: none of its addresses means anything now.
  epoch_.fetch_add(1, std::memory_order_release);
  return cpython::request_code_slot(&CodeRegistry::died);
}

void CodeRegistry::died(void*) {
  CodeRegistry& self = store().codes;
  self.deaths_.fetch_add(1, std::memory_order_relaxed);
  self.epoch_.fetch_add(1, std::memory_order_release);
}

CodeId CodeRegistry::id_of(PyCodeObject* code) noexcept {
  const CodeEntry* entry = entry_of(code);
  return entry != nullptr ? entry->id : kNoCode;
}

CodeId CodeRegistry::id_by_content(const PyCodeObject* code) noexcept {
  const CodeEntry* entry = intern(cpython::view_code(code));
  return entry != nullptr ? entry->id : kNoCode;
}

CodeEntry* CodeRegistry::entry_of(PyCodeObject* code) noexcept {
  CodeEntry* entry = known_entry(code);
  return entry != nullptr ? entry : register_code(code);
}

// Without a slot there would be no notice of death, and the id would outlive its code in caches.
CodeEntry* CodeRegistry::register_code(PyCodeObject* code) noexcept {
  const base::Ours ours;  // a capture in an allocator's hook would find our caller's half done
  CodeEntry* entry = cpython::is_dying(code) ? nullptr : intern(cpython::view_code(code));
  if (entry != nullptr && cpython::set_code_slot(code, entry)) return entry;
  lost_.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

CodeEntry* CodeRegistry::intern(const cpython::CodeView& view) noexcept {
  base::BytePool& pool = base::names();
  const CodeEntry wanted = {pool.intern(view.name),
                            pool.intern(view.qualname),
                            pool.intern(view.filename),
                            pool.intern(view.line_table),
                            view.first_line,
                            kNoCode,
                            view.suspends,
                            0};
  constexpr auto kNone = base::BytePool::kNone;
  if (wanted.name == kNone || wanted.qualname == kNone || wanted.filename == kNone ||
      wanted.line_table == kNone) {
    return nullptr;
  }
  const base::Holding holding(lock_);
  const std::uint64_t hash = hash_of(wanted);
  const auto is_wanted = [&](CodeId other) { return same_code(*entries_.at(other), wanted); };
  if (const CodeId id = index_.find(hash, is_wanted)) return entries_.at(id);
  const CodeId id = last_.load(std::memory_order_relaxed) + 1;
  CodeEntry* entry = entries_.ensure(id);
  if (entry == nullptr) return nullptr;
  entry->name = wanted.name;
  entry->qualname = wanted.qualname;
  entry->filename = wanted.filename;
  entry->line_table = wanted.line_table;
  entry->first_line = wanted.first_line;
  entry->id = id;
  entry->suspends = wanted.suspends;
  last_.store(id, std::memory_order_release);  // before it can be found, as in BytePool::keep
  const auto hash_of_id = [&](CodeId other) { return hash_of(*entries_.at(other)); };
  if (index_.insert(hash, id, hash_of_id)) return entry;
  last_.store(id - 1, std::memory_order_release);
  return nullptr;
}

std::uint64_t CodeRegistry::hash_of(const CodeEntry& entry) noexcept {
  std::uint64_t hash = base::mix(entry.name, entry.qualname);
  hash = base::mix(hash, entry.filename);
  hash = base::mix(hash, entry.line_table);
  return base::mix(hash, static_cast<std::uint32_t>(entry.first_line));
}

CodeFacts CodeRegistry::facts(CodeId id) const noexcept {
  if (id == kNoCode) return {};
  const CodeEntry& entry = *entries_.at(id);
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
