// code_registry.h: what a code id means, for as long as the process lives.
//
// Threads: id_of() and keep_all() under the GIL; facts() any; died() wherever CPython frees code.
// The registry's lock (rank `codes`) makes reading a code object's facts and its death exclude each
// other.
// Allocates: by mmap, and through PyMem at first sight of a code object (its slot).
// Fails by: kNoCode, or facts that say they are lost; both are counted.
//
// An id is ours, never an address: addresses come back with other code behind them. The id lies in
// a slot of the code object; the slot's free function is the notice of death. Until then names and
// line table are read from the code object when first asked for; at the latest then, they are
// copied. No reference is held.
#pragma once

#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/byte_pool.h"
#include "base/lock.h"
#include "base/segments.h"
#include "stacks/stack_table.h"

namespace whence::stacks {

inline constexpr CodeId kNoCode = 0;

struct CodeFacts {
  bool known;  // false: lost for lack of memory, or never had
  std::string_view name, qualname, filename;
  std::span<const std::uint8_t> line_table;
  std::int32_t first_line;
};

class CodeRegistry {
 public:
  // Makes the registry ready for this interpreter. False if CPython has no slot left for us.
  [[nodiscard]] bool attach() noexcept;
  // Copies the facts of all living code objects and lets go of them: the interpreter is about to
  // end.
  void detach() noexcept;

  [[nodiscard]] CodeId id_of(PyCodeObject* code) noexcept;
  [[nodiscard]] CodeFacts facts(CodeId id) noexcept;

  // Grows with each death: an (address, id) pair remembered under an older count may be wrong.
  [[nodiscard]] std::uint64_t deaths() const noexcept {
    return deaths_.load(std::memory_order_acquire);
  }

  struct Statistics {
    std::uint32_t codes, dead;
    std::uint64_t lost;
    std::size_t bytes;
  };
  [[nodiscard]] Statistics statistics() const noexcept;

 private:
  enum class State : std::uint8_t { unread, kept, lost };
  struct Entry {
    PyCodeObject* code;  // nullptr once dead
    base::BytePool::Ref name, qualname, filename, line_table;
    std::int32_t first_line;
    State state;
  };

  static void died(void* slot);
  static void interpreter_gone();
  void keep(Entry& entry) noexcept;
  void bury(Entry& entry) noexcept;
  [[nodiscard]] CodeId add(PyCodeObject* code) noexcept;

  base::Lock lock_{base::Rank::codes};
  base::Segments<Entry, 10> entries_;    // entries: under lock_, but `kept` ones no longer change
  std::atomic<std::uint32_t> last_ = 0;  // the newest id; written under lock_
  std::atomic<std::uint32_t> dead_ = 0;  // under lock_
  std::atomic<std::uint64_t> lost_ = 0;  // under lock_
  std::atomic<std::uint64_t> deaths_ = 0;
  bool exit_watched_ = false;  // under the GIL
  base::BytePool pool_;
};

}  // namespace whence::stacks
