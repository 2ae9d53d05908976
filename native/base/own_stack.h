// own_stack.h: the stack that this thread began with.
//
// Threads: any, each its own. Allocates: never on a stack that glibc has made; the C library does
// for the thread that the process began with, and on a stack that was given to it and begins inside
// a page. Fails by: an empty stack.
//
// The C library tells it by pthread_getattr_np(), which takes memory and, the first time that many
// threads do, some 5 KB of stack: too much under somebody's lock, or at the end of a stack. But
// glibc keeps what it tells in the thread's descriptor, and puts that at the high end of the stack:
//
//     begin of the block | guard pages | ... frames ... | descriptor, thread-local data | end
//                                                         ^ pthread_self()
//
// In there, one word is where the block begins, and the next two are its size and that of the guard
// pages. No others are of that kind and fit to where the descriptor is.
#pragma once

namespace whence::base {

struct OwnStack {
  char* begin = nullptr;  // behind the guard pages
  char* end = nullptr;
};

[[nodiscard]] OwnStack own_stack() noexcept;

}  // namespace whence::base
