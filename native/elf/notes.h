// notes.h: the build id among the notes of an ELF file.
//
// Threads: any; only arguments are touched. Allocates: a copy of the notes, 64 KB at most.
// Fails by: an empty string, for notes that are not there as well; std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>

#include "elf/bytes.h"

namespace whence::elf {

// Notes that begin beyond these bytes of a section or segment are not looked at.
inline constexpr std::uint64_t kMostNotes = 1 << 16;
// Nor are more of these in one file: they may all be the same bytes. Real ones have five or so.
inline constexpr int kMostNotePlaces = 64;
inline constexpr std::uint32_t kLongestBuildId = 64;

[[nodiscard]] std::string build_id_in(const Bytes& bytes, std::uint64_t offset, std::uint64_t size,
                                      std::uint64_t alignment);

}  // namespace whence::elf
