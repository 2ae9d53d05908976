// reader_tables.h: methods of _core.Reader that go through a recording and give tables back.
//
// Threads: holders of the GIL, which unpacking may let go meanwhile.
// Allocates: what native/read/ says, and Python objects. Fails by: Python's error.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>

#include "read/slice.h"
#include "read/symbol_chunks.h"

namespace whence::module {

// A time in nanoseconds, which None leaves as it is; false with Python's error set.
[[nodiscard]] bool read_time(PyObject* value, std::int64_t& time);

// From (from, to, threads, deadline), each None or a value; false with Python's error set.
[[nodiscard]] bool read_slice(PyObject* args, read::Slice& slice);

// Warns if a deadline has ended the reading at this time: for streams, which have no other way to
// say it. False with Python's error set, if warnings are errors.
[[nodiscard]] bool warn_of_part(std::optional<std::int64_t> read_until) noexcept;

// That time for whoever tells it: a new reference, None if all was read.
[[nodiscard]] PyObject* time_or_none(std::optional<std::int64_t> read_until) noexcept;

// _core.Reader.tree
[[nodiscard]] PyObject* reader_tree(PyObject* reader, PyObject* args);

// _core.arrow_calls, .arrow_blocks: a capsule with a stream, as the Arrow PyCapsule interface has
// it. arrow_stream.cpp
extern PyMethodDef arrow_functions[];

// _core.Reader.export_perfetto, .export_chrome. reader_export.cpp
[[nodiscard]] PyObject* reader_export_perfetto(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_export_chrome(PyObject* reader, PyObject* args);

// What numbers in a recording stand for. reader_names.cpp
[[nodiscard]] PyObject* reader_info(PyObject* reader, PyObject* key);
[[nodiscard]] PyObject* reader_code(PyObject* reader, PyObject* number);
[[nodiscard]] PyObject* reader_stack(PyObject* reader, PyObject* number);
[[nodiscard]] PyObject* reader_modules(PyObject* reader, PyObject*);
// From a list of (module, address, name, file, line). False with Python's error set.
[[nodiscard]] bool take_symbols(PyObject* list, read::SymbolChunks& symbols);
[[nodiscard]] PyObject* reader_native_frames(PyObject* reader, PyObject*);
[[nodiscard]] PyObject* reader_symbols(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_string(PyObject* reader, PyObject* number);
[[nodiscard]] PyObject* reader_place(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_sources(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_handle_tables(PyObject* reader, PyObject*);

// _core.Reader.memory_*, .pools. reader_memory.cpp
[[nodiscard]] PyObject* reader_memory_peak(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_live(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_churn(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_usage(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_history(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_failures(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_pools(PyObject* reader, PyObject*);

// What exports need of memory. reader_blocks.cpp
[[nodiscard]] PyObject* reader_memory_starts(PyObject* reader, PyObject*);
[[nodiscard]] PyObject* reader_memory_taken(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_largest(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_newest(PyObject* reader, PyObject* args);
[[nodiscard]] PyObject* reader_memory_segments(PyObject* reader, PyObject* args);

}  // namespace whence::module
