// symbol_functions.h: ELF files and mangled names for Python.
//
// Threads: attached ones; files are read without the GIL. Allocates: freely. Fails by: Python's
// error: OSError for what cannot be opened or read, ValueError for what is no such file.
#pragma once

#include <Python.h>

namespace whence::module {

// Adds ElfFile and demangle() to the module; false with an error set.
[[nodiscard]] bool add_symbols(PyObject* module) noexcept;

}  // namespace whence::module
