// tags.h: keyword arguments as the tags of a span.
//
// Threads: holders of the GIL.
// Allocates: never; the caller gives the room.
// Fails by: leaving out what does not fit. No code of the program is run: values that are no plain
// number or text leave the name of their type.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace whence::module {

// Writes the tags to `out`, which has format::kMostTagBytes; how many bytes they took.
[[nodiscard]] std::size_t encode_tags(PyObject* names, PyObject* const* values,
                                      std::uint8_t* out) noexcept;

// Sees to it that the recording knows the names of these tags.
void write_tag_names(std::uint32_t recording, std::span<const std::uint8_t> tags) noexcept;

}  // namespace whence::module
