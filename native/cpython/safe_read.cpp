// safe_read.cpp: see safe_read.h.
#include "cpython/safe_read.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace whence::cpython {

SafeReader::SafeReader() noexcept {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) ends_[0] = ends_[1] = -1;
}

SafeReader::~SafeReader() {
  if (!usable()) return;
  close(ends_[0]);
  close(ends_[1]);
}

bool SafeReader::copy(std::uintptr_t address, void* to, std::size_t size) const noexcept {
  const int saved = errno;
  // The bare system call: a sanitizer's write() would judge an address that is meant to be a guess.
  const auto written = syscall(SYS_write, ends_[1], address, size);
  // What was written must be taken out again, even if it is only the part before an unmapped page.
  const auto taken = written > 0 ? ::read(ends_[0], to, static_cast<std::size_t>(written)) : 0;
  errno = saved;
  return taken == static_cast<ssize_t>(size);
}

}  // namespace whence::cpython
