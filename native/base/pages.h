// pages.h: zeroed memory straight from the kernel, for tables that live as long as the process.
//
// Threads: any.
// Allocates: by mmap only. malloc is never entered, so a table may grow inside an allocator hook.
// Fails by: nullptr; the caller counts what it then cannot keep.
#pragma once

#include <cstddef>

namespace whence::base {

[[nodiscard]] void* map_pages(std::size_t bytes) noexcept;
void unmap_pages(void* pages, std::size_t bytes) noexcept;

}  // namespace whence::base
