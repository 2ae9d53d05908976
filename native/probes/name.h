// name.h: Python strings as names in the recording.
//
// Threads: holders of the GIL.
// Allocates: at first sight of a name, by mmap.
// Fails by: 0, the name of nothing. A failing probe raises nothing.
#pragma once

#include <Python.h>

#include <cstdint>

#include "base/byte_pool.h"

namespace whence::probes {

// The process's number for a string; BytePool::kNone if there is no room for it.
[[nodiscard]] base::BytePool::Ref ref_of(PyObject* text) noexcept;

// Its number in the recording, written there first if need be.
[[nodiscard]] std::uint64_t name_of(PyObject* text) noexcept;

}  // namespace whence::probes
