// demangle.h: the names of C++ and Rust functions as people write them.
//
// Threads: any; only arguments are touched. Allocates: the name, and what the C++ library needs for
// it: a few times kLongestDemangled at most. Fails by: the name as it was; std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elf/symbols.h"

namespace whence::elf {

// What is longer than kLongestName (symbols.h) is cut and ends with "...". Rust's own scheme
// ("_R") is left as it is; in the older one, the hash at the end goes.
[[nodiscard]] std::string demangle(std::string_view name);

// The function of each address, with its name demangled.
[[nodiscard]] std::vector<std::optional<Found>> find_demangled(
    const Symbols& symbols, const Image& image, std::span<const std::uint64_t> addresses);

}  // namespace whence::elf
