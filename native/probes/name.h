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

// The process's number for a string, of which a million characters count; BytePool::kNone if there
// is no room for it.
[[nodiscard]] base::BytePool::Ref ref_of(PyObject* text) noexcept;

// Its number in that recording, written there first if need be. A name that nobody has used before
// is not kept once the recording has no room for it, so that a ring bounds memory too.
[[nodiscard]] std::uint64_t name_of(std::uint32_t recording, PyObject* text) noexcept;

}  // namespace whence::probes
