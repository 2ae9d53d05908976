// code.h: a slot of ours on every code object, a notice of its death, and a look at its facts.
//
// Threads: holders of the GIL.
// Allocates: set_code_slot() does, through PyMem: never call it inside an allocator hook.
// Fails by: false; no exception is set, a pending one is kept.
//
// CPython gives each code object "extra" slots whose free function runs when the object dies. At
// that time its reference count is 0 and its names and line table can still be read, as long as
// nothing increments a reference count or raises (checked on 3.11 to 3.15).
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>

#include "base/text.h"

namespace whence::cpython {

// Asks for the slot; `died` is called with a slot's content when its code object dies.
[[nodiscard]] bool request_code_slot(void (*died)(void*)) noexcept;

[[nodiscard]] void* code_slot(PyCodeObject* code) noexcept;
[[nodiscard]] bool set_code_slot(PyCodeObject* code, void* content) noexcept;

// Views into a code object, valid while it is; reading them touches no reference count.
struct CodeView {
  base::UnicodeView name, qualname, filename;
  std::span<const std::uint8_t> line_table;
  std::int32_t first_line;
};

[[nodiscard]] CodeView view_code(const PyCodeObject* code) noexcept;
[[nodiscard]] base::UnicodeView view_text(PyObject* text) noexcept;

}  // namespace whence::cpython
