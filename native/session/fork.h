// fork.h: what whence does in a forked child.
//
// Threads: the forking one. Allocates: never.
// Fails by: it cannot. A child that was made past the C library's fork() finds its cursors wiped,
// and takes no lock.
//
// A lock that another thread held at the moment of the fork stays held in the child for ever, by
// nobody. It is made new there, which is enough: whatever is under a lock is written so that it can
// be left off anywhere. Taking the locks before the fork, as is usual, could deadlock with a lock
// of the program's that is held by a thread waiting for ours, and taken by a handler after ours.
// The loader's cannot be made new: so a fork waits for threads that are looking at its libraries
// for us, but not for ever.
#pragma once

namespace whence::session {

// Once in the life of the process; further calls do nothing.
void watch_forks() noexcept;

}  // namespace whence::session
