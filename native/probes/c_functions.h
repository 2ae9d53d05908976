// c_functions.h: the C library's allocators and mappings, each with a telling of what it does.
//
// Threads: any at any time, under any lock but those of the C library's allocator.
// Allocates: what the program asked for. Fails by: as the function that it stands for, with its
// errno.
//
// Programs call these instead of the C library's (c_allocators.h). Calls also come when nothing of
// this is recorded: from a forked child, and by pointers that the program was given while it was.
// They are passed on then.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>

namespace whence::probes {

namespace detail {
extern std::atomic<bool> c_functions_wanted;
}

void* malloc_told(std::size_t size);
void* calloc_told(std::size_t count, std::size_t size);
void* realloc_told(void* old, std::size_t size);
void* reallocarray_told(void* old, std::size_t count, std::size_t size);
void free_told(void* block);
int posix_memalign_told(void** out, std::size_t alignment, std::size_t size);
void* aligned_alloc_told(std::size_t alignment, std::size_t size);
void* memalign_told(std::size_t alignment, std::size_t size);
void* valloc_told(std::size_t size);
void* pvalloc_told(std::size_t size);
void* mmap_told(void* at, std::size_t size, int protection, int flags, int file, off_t offset);
void* mmap64_told(void* at, std::size_t size, int protection, int flags, int file, off64_t offset);
int munmap_told(void* at, std::size_t size);
void* mremap_told(void* old, std::size_t old_size, std::size_t size, int flags, ...);

}  // namespace whence::probes
