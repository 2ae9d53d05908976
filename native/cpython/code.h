// code.h: a slot of ours on every code object, a notice of its death, and a look at its facts.
//
// Threads: holders of the GIL.
// Allocates: set_code_slot() does, through PyMem: never call it inside an allocator hook.
// Fails by: false; a pending exception is kept.
//
// CPython gives each code object "extra" slots whose free function runs when the object dies. At
// that time its reference count is 0: nothing may increment it or raise.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>

#include "base/text.h"

namespace whence::cpython {

// Asks for this interpreter's slot, once in its life; `died` is called with a slot's content when a
// code object dies that has one. False with Python's error set if CPython has none left.
[[nodiscard]] bool request_code_slot(void (*died)(void*)) noexcept;

[[nodiscard]] bool set_code_slot(PyCodeObject* code, void* content) noexcept;

namespace detail {
// How CPython keeps the slots, behind a pointer in the code object.
struct Slots {
  Py_ssize_t count;
  void* content[1];
};
// Both guarded by the GIL, and written when the module is loaded.
extern Py_ssize_t slot;
// The same if request_code_slot() has found ours where it should lie, else beyond all of them.
extern Py_ssize_t known_slot;
inline constexpr Py_ssize_t kBeyondSlots = 256;
[[nodiscard]] void* code_slot_by_api(PyCodeObject* code) noexcept;
}  // namespace detail

// nullptr also where slots do not lie as expected. Calls nothing.
[[nodiscard, gnu::always_inline]] inline void* code_slot_quickly(
    const PyCodeObject* code) noexcept {
  const auto* slots = static_cast<const detail::Slots*>(code->co_extra);
  const Py_ssize_t slot = detail::known_slot;
  return slots != nullptr && slot < slots->count ? slots->content[slot] : nullptr;
}

[[nodiscard, gnu::always_inline]] inline void* code_slot(PyCodeObject* code) noexcept {
  if (detail::known_slot == detail::kBeyondSlots) [[unlikely]]
    return detail::code_slot_by_api(code);
  return code_slot_quickly(code);
}

// Is the object being freed? (3.11.0 leaves a frame in the chain while its code goes, gh-99729.)
[[nodiscard]] bool is_dying(PyCodeObject* code) noexcept;

// Views into a code object, valid while it is; reading them touches no reference count.
struct CodeView {
  base::UnicodeView name, qualname, filename;
  std::span<const std::uint8_t> line_table;
  std::int32_t first_line;
  bool suspends;  // of generators, coroutines and asynchronous generators
};

[[nodiscard]] CodeView view_code(const PyCodeObject* code) noexcept;
[[nodiscard]] base::UnicodeView view_text(PyObject* text) noexcept;

}  // namespace whence::cpython
