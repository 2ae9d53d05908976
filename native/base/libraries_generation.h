// libraries_generation.h: a number that changes when a library is loaded.
//
// Threads: any, also inside a signal handler. Takes no lock where the loader is known; else its
// lock on the list of libraries.
// Allocates: never. Fails by: it cannot.
//
// What is known of an address of a library stays true until the number changes. A library that is
// unloaded leaves addresses that nobody calls, until another takes its place.
#pragma once

#include <cstdint>

namespace whence::base {

[[nodiscard]] std::uint64_t libraries_generation() noexcept;

}  // namespace whence::base
