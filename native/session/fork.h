// fork.h: what whence does around fork().
//
// Threads: the forking one. Allocates: never.
// Fails by: it cannot. A child that was made past the C library's fork() finds its cursors wiped.
//
// A lock that another thread holds at the moment of the fork stays held in the child for ever, so
// the forking thread takes them all first. None is ever held for long.
#pragma once

namespace whence::session {

// Once in the life of the process; further calls do nothing.
void watch_forks() noexcept;

}  // namespace whence::session
