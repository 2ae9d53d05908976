// code_registry.h: what a code id means, for as long as the process lives.
//
// Threads: id_of() and attach() under the GIL; facts() and id_by_content() any; died() wherever
// CPython frees code. New entries are added under the registry's lock (rank `codes`) and never
// change.
// Allocates: by mmap, and through PyMem at first sight of a code object (its slot).
// Fails by: kNoCode, counted.
//
// An id is ours, never an address: addresses come back with other code behind them. It stands for
// what a code object says of itself: names, file, first line and line table, copied at first sight.
// Code that is made again and again from the same source has one id. A slot of the code object
// points at the entry, and the slot's free function is the notice of its death; no reference and no
// pointer is held.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/byte_pool.h"
#include "base/id_index.h"
#include "base/lock.h"
#include "base/segments.h"
#include "cpython/code.h"
#include "stacks/stack_table.h"

namespace whence::stacks {

inline constexpr CodeId kNoCode = 0;

// What is known of a piece of code. All but `mark` is written once, before the id is published.
struct CodeEntry {
  base::BytePool::Ref name, qualname, filename, line_table;
  std::int32_t first_line;
  CodeId id;
  bool suspends;                    // its frames belong to generators, coroutines and the like
  std::atomic<std::uint32_t> mark;  // whatever the call probe notes, see probes/call_codes.h
};

struct CodeFacts {
  std::string_view name, qualname, filename;
  std::span<const std::uint8_t> line_table;
  std::int32_t first_line;
};

class CodeRegistry {
 public:
  // Makes the registry ready for this interpreter. False with Python's error set if it cannot be.
  [[nodiscard]] bool attach() noexcept;

  [[nodiscard]] CodeId id_of(PyCodeObject* code) noexcept;
  // For a thread that does not hold the GIL, of code that one of its frames keeps alive. Nobody
  // will be told when that dies.
  [[nodiscard]] CodeId id_by_content(const PyCodeObject* code) noexcept;
  // The entry of code that has been seen before, else nullptr.
  [[nodiscard, gnu::always_inline]] static CodeEntry* known_entry(PyCodeObject* code) noexcept {
    return static_cast<CodeEntry*>(cpython::code_slot(code));
  }
  // The same, or nullptr where it takes a call to find out.
  [[nodiscard, gnu::always_inline]] static CodeEntry* entry_at_hand(
      const PyCodeObject* code) noexcept {
    return static_cast<CodeEntry*>(cpython::code_slot_quickly(code));
  }
  // The entry of any code, added if need be; nullptr if there is no room for it.
  [[nodiscard]] CodeEntry* entry_of(PyCodeObject* code) noexcept;
  [[nodiscard]] CodeEntry& entry(CodeId id) const noexcept { return *entries_.at(id); }
  // Empty for kNoCode.
  [[nodiscard]] CodeFacts facts(CodeId id) const noexcept;

  // Moves on with each death: an (address, id) pair remembered in an earlier epoch may be wrong.
  [[nodiscard]] std::uint64_t epoch() const noexcept {
    return epoch_.load(std::memory_order_acquire);
  }

  struct Statistics {
    std::uint32_t codes;
    std::uint64_t deaths, lost;
    std::size_t bytes;
  };
  [[nodiscard]] Statistics statistics() const noexcept;

  // For fork() alone.
  [[nodiscard]] base::Lock& lock() noexcept { return lock_; }

 private:
  static void died(void* slot);
  [[nodiscard]] static std::uint64_t hash_of(const CodeEntry& entry) noexcept;
  [[nodiscard]] CodeEntry* register_code(PyCodeObject* code) noexcept;
  [[nodiscard]] CodeEntry* intern(const cpython::CodeView& view) noexcept;

  base::Lock lock_{base::Rank::codes};
  base::Segments<CodeEntry, 10> entries_;  // written under lock_ before the id is published
  base::IdIndex index_;                    // insert under lock_
  std::atomic<std::uint32_t> last_ = 0;    // the newest id; written under lock_
  std::atomic<std::uint64_t> epoch_ = 1;
  std::atomic<std::uint64_t> deaths_ = 0;
  std::atomic<std::uint64_t> lost_ = 0;
};

}  // namespace whence::stacks
