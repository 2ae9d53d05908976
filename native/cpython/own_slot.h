// own_slot.h: the state that a thread of 3.11 calls its own, read where the C library keeps it.
//
// Threads: any, with the GIL or without. find_own_slot() once, when the module is loaded.
// Allocates: never. Fails by: not being known; then CPython is asked, which takes longer.
//
// On 3.11 the current state is one global, so a thread compares it with its own, which CPython
// keeps as data of a pthread key. Asking for that is three calls into two libraries, for every
// event of memory. But glibc keeps the data of the first 32 keys inside the thread's descriptor, at
// the same distance from the thread pointer in all threads:
//
//     thread pointer ... | sequence, data | sequence, data | ...
//                          key 0            key 1
//
// Where they begin is found by a key of our own. CPython makes its key before anybody else can know
// a state, so of several that hold this one, the first is CPython's.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstring>

namespace whence::cpython {

void find_own_slot() noexcept;

namespace detail {
extern std::size_t own_place;  // bytes after the thread pointer; 0: not known. Set once

[[nodiscard, gnu::always_inline]] inline const char* thread_pointer() noexcept {
  const char* pointer = nullptr;
#if defined(__x86_64__)
  asm("movq %%fs:0, %0" : "=r"(pointer));
#endif
  return pointer;
}
}  // namespace detail

[[nodiscard, gnu::always_inline]] inline bool own_slot_is_known() noexcept {
  return detail::own_place != 0;
}

// The same as PyGILState_GetThisThreadState(), if the place is known.
[[nodiscard, gnu::always_inline]] inline PyThreadState* own_state_in_slot() noexcept {
  PyThreadState* state;
  std::memcpy(&state, detail::thread_pointer() + detail::own_place, sizeof state);
  return state;
}

}  // namespace whence::cpython
