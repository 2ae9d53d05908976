// safe_copy.h: reading memory that may not be there.
//
// Threads: any, also inside a signal handler. Allocates: never.
// Fails by: false, where a load would have been a fault.
//
// The kernel copies for us and reports a bad address as an error. Where it may not copy from a
// process to itself (some sandboxes forbid that call), it is asked whether each page can be read,
// by a call that reads a word and then refuses to do anything with it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace whence::base {

// All of it or false; then `to` may have been written to.
[[nodiscard]] bool safe_copy(std::uintptr_t from, void* to, std::size_t size) noexcept;

}  // namespace whence::base
