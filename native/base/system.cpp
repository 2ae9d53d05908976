// system.cpp: see system.h.
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace whence::base {
namespace {

int open_file(const char* path, int flags, unsigned mode) {
  return ::open(path, flags, mode);
}

int reserve(int file, off_t offset, off_t length) {
  return ::fallocate(file, 0, offset, length);
}

int size_of(int file, off_t* size) {
  struct stat status;
  if (::fstat(file, &status) != 0) return -1;
  *size = status.st_size;
  return 0;
}

int identify(int file, FileId* id) {
  struct stat status;
  if (::fstat(file, &status) != 0) return -1;
  *id = {status.st_dev, status.st_ino};
  return 0;
}

}  // namespace

constinit System system = {open_file, ::close, ::unlink, ::rename, reserve,  size_of,
                           identify,  ::pread, ::pwrite, ::mmap,   ::munmap, ::madvise};

int write_all(int file, const void* data, std::size_t size, off_t offset) noexcept {
  const char* from = static_cast<const char*>(data);
  int interruptions = 0;
  while (size != 0) {
    const ssize_t done = system.pwrite(file, from, size, offset);
    if (done < 0 && errno == EINTR && ++interruptions < kMostInterruptions) continue;
    if (done <= 0) return done < 0 ? errno : ENOSPC;
    from += done;
    offset += done;
    size -= static_cast<std::size_t>(done);
  }
  return 0;
}

ssize_t read_all(int file, void* data, std::size_t size, off_t offset) noexcept {
  char* to = static_cast<char*>(data);
  std::size_t got = 0;
  int interruptions = 0;
  while (got != size) {
    const ssize_t done = system.pread(file, to + got, size - got, offset + static_cast<off_t>(got));
    if (done < 0 && errno == EINTR && ++interruptions < kMostInterruptions) continue;
    if (done < 0) return -1;
    if (done == 0) break;
    got += static_cast<std::size_t>(done);
  }
  return static_cast<ssize_t>(got);
}

}  // namespace whence::base
