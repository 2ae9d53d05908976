// mangled_size.h: how long a mangled C++ name may become.
//
// Threads: any; only arguments are touched. Allocates: a stack of groups, shorter than the name.
// Fails by: std::bad_alloc.
//
// A mangled name refers back to its parts: "S0_" is a whole type that was spelled out before. Each
// type may hold the one before it twice, so 240 bytes can stand for 200 MB, and 500 bytes for more
// than there is memory, and the C++ library's demangler prints it all. So names are measured first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace whence::elf {

inline constexpr std::size_t kLongestMangled = 1 << 12;  // libstdc++ refuses more than 1024 letters
inline constexpr std::uint64_t kLongestDemangled = 1 << 24;

// No less than the length of what the name stands for, or more than kLongestDemangled: it is too
// long, or has something in it that is not known here, as 3 in 1,000 names of large libraries have.
[[nodiscard]] std::uint64_t most_demangled(std::string_view mangled);

}  // namespace whence::elf
