// code_registry.cpp: see code_registry.h.
#include "stacks/code_registry.h"

#include "cpython/code.h"
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
  detach();
  if (!exit_watched_) exit_watched_ = Py_AtExit(&CodeRegistry::interpreter_gone) == 0;
  return cpython::request_code_slot(&CodeRegistry::died);
}

void CodeRegistry::detach() noexcept {
  const base::Holding holding(lock_);
  const CodeId last = last_.load(std::memory_order_relaxed);
  for (CodeId id = 1; id <= last; ++id) bury(*entries_.at(id));
}

// Called at the very end of finalization, when no code object may be read any more. detach() has
// normally run by then; if the module leaked, what is still unread is lost. Another interpreter may
// start after this one.
void CodeRegistry::interpreter_gone() {
  CodeRegistry& self = store().codes;
  const base::Holding holding(self.lock_);
  const CodeId last = self.last_.load(std::memory_order_relaxed);
  for (CodeId id = 1; id <= last; ++id) {
    Entry& entry = *self.entries_.at(id);
    if (entry.code != nullptr && entry.state == State::unread) {
      entry.state = State::lost;
      self.lost_.fetch_add(1, std::memory_order_relaxed);
    }
    self.bury(entry);
  }
  self.exit_watched_ = false;
}

CodeId CodeRegistry::id_of(PyCodeObject* code) noexcept {
  const CodeId id = from_slot(cpython::code_slot(code));
  return id != kNoCode ? id : add(code);
}

CodeId CodeRegistry::add(PyCodeObject* code) noexcept {
  CodeId id;
  {
    const base::Holding holding(lock_);
    id = last_.load(std::memory_order_relaxed) + 1;
    Entry* entry = entries_.ensure(id);
    if (entry == nullptr) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return kNoCode;
    }
    entry->code = code;
    last_.store(id, std::memory_order_release);
  }
  if (cpython::set_code_slot(code, to_slot(id))) return id;
  // Without a slot there is no notice of death: read what there is and forget the address.
  const base::Holding holding(lock_);
  bury(*entries_.at(id));
  return id;
}

void CodeRegistry::died(void* slot) {
  CodeRegistry& self = store().codes;
  const base::Holding holding(self.lock_);
  self.bury(*self.entries_.at(from_slot(slot)));
  self.deaths_.fetch_add(1, std::memory_order_release);
}

void CodeRegistry::bury(Entry& entry) noexcept {
  if (entry.code == nullptr) return;
  keep(entry);
  entry.code = nullptr;
  dead_.fetch_add(1, std::memory_order_relaxed);
}

void CodeRegistry::keep(Entry& entry) noexcept {
  if (entry.state != State::unread) return;
  const cpython::CodeView view = cpython::view_code(entry.code);
  entry.name = pool_.intern(view.name);
  entry.qualname = pool_.intern(view.qualname);
  entry.filename = pool_.intern(view.filename);
  entry.line_table = pool_.intern(view.line_table);
  entry.first_line = view.first_line;
  constexpr auto kNone = base::BytePool::kNone;
  const bool whole = entry.name != kNone && entry.qualname != kNone && entry.filename != kNone &&
                     entry.line_table != kNone;
  entry.state = whole ? State::kept : State::lost;
  if (!whole) lost_.fetch_add(1, std::memory_order_relaxed);
}

CodeFacts CodeRegistry::facts(CodeId id) noexcept {
  if (id == kNoCode || id > last_.load(std::memory_order_acquire)) return {};
  const base::Holding holding(lock_);
  Entry& entry = *entries_.at(id);
  if (entry.code != nullptr) keep(entry);
  if (entry.state != State::kept) return {};
  const std::string_view table = pool_.get(entry.line_table);
  return {true,
          pool_.get(entry.name),
          pool_.get(entry.qualname),
          pool_.get(entry.filename),
          {reinterpret_cast<const std::uint8_t*>(table.data()), table.size()},
          entry.first_line};
}

CodeRegistry::Statistics CodeRegistry::statistics() const noexcept {
  return {last_.load(std::memory_order_acquire), dead_.load(std::memory_order_relaxed),
          lost_.load(std::memory_order_relaxed), entries_.bytes() + pool_.bytes()};
}

}  // namespace whence::stacks
