// c_allocators.h: the C library's allocators and the mappings of the process, as every loaded
// library calls them.
//
// Threads: add_c_allocators() and remove_c_allocators() under the GIL, which they give away for a
// moment, one at a time; what is called instead of the C library, on any thread at any time, under
// any lock but those of its allocator.
// Allocates: pages, for the time of add and remove. Fails by: a reason; a library that is left out.
//
// Calls are redirected (base/redirect.h), so it does not matter when a library was loaded. One that
// is loaded later is looked at when somebody asks it for a function: until then nobody can have
// called it but its own initialisers. Pointers to these functions that the program has from before
// are not seen.
//
// Only the outermost allocator counts: what CPython's allocators take from these was told as a
// block of theirs.
#pragma once

namespace whence::probes {

// nullptr, or why not. Again while they are there: libraries loaded since are added.
[[nodiscard]] const char* add_c_allocators();
// nullptr, or why some of their events are missing.
const char* remove_c_allocators();
// In a forked child: nothing is put back, since that would take a lock of the loader's. Calls go on
// coming here, and are passed on.
void forget_c_allocators() noexcept;

}  // namespace whence::probes
