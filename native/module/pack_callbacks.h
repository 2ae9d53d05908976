// pack_callbacks.h: Python functions that pack and unpack, lent to native/read/.
//
// Threads: holders of the GIL. Allocates: Python objects.
// Fails by: `abort` or false, with the exception left pending for whoever called the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "read/source.h"

namespace whence::module {

// unpack(packed, size) -> bytes. Bytes of another size mean that it could not be unpacked. With
// `part`: unpack(packed, size, True) -> at most so many bytes, what there is of them.
[[nodiscard]] read::Unpacked call_unpack(void* callable, std::span<const std::uint8_t> packed,
                                         std::span<std::uint8_t> out, std::size_t* part);
// pack(payload) -> bytes
[[nodiscard]] bool call_pack(void* callable, std::span<const std::uint8_t> payload,
                             std::vector<std::uint8_t>& out);

}  // namespace whence::module
