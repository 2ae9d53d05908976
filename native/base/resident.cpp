// resident.cpp: see resident.h.
#include "base/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/not_cancelled.h"
#include "base/system.h"

namespace whence::base {

std::uint64_t resident_bytes() noexcept {
  const NotCancelled not_cancelled;
  const int before = errno;
  char text[128] = {};
  const int file = system.open("/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
  const ssize_t got = file < 0 ? -1 : system.pread(file, text, sizeof text - 1, 0);
  if (file >= 0) system.close(file);
  char* end = text;
  std::uint64_t pages = 0;
  if (got > 0) {
    std::strtoull(text, &end, 10);  // all of its address space
    pages = std::strtoull(end, nullptr, 10);
  }
  errno = before;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace whence::base
