// file.cpp: see file.h.
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/system.h"

namespace whence::store {
namespace {

using base::system;

constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
constexpr unsigned kMode = 0600;

int open_new(const char* path) noexcept {
  int file = -1;
  for (int attempt = 0; attempt < base::kMostInterruptions; ++attempt) {
    file = system.open(path, kFlags, kMode);
    if (file >= 0 || errno != EINTR) break;
  }
  return file;
}

// Pipes and devices are no files to put another in the place of.
bool may_be_replaced(const char* path) noexcept {
  struct stat status;
  return lstat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISLNK(status.st_mode);
}

// A larger file would be answered with SIGXFSZ, which ends programs that do not expect it.
bool exceeds_limit(std::uint64_t end) noexcept {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         end > limit.rlim_cur;
}

}  // namespace

format::Reason reason_of(int error) noexcept {
  using format::Reason;
  switch (error) {
    case 0: return Reason::none;
    case ENOSPC: return Reason::disk;
    case EDQUOT: return Reason::quota;
    case EFBIG: return Reason::file_limit;
    case ENOMEM:
    case EAGAIN: return Reason::memory;
    default: return Reason::io;
  }
}

int File::create(const char* path, bool overwrite) noexcept {
  beside_[0] = 0;
  if (std::strlen(path) >= sizeof path_) return ENAMETOOLONG;
  std::strcpy(path_, path);
  if (overwrite) {
    if (!may_be_replaced(path)) return EEXIST;
    const int length = snprintf(beside_, sizeof beside_, "%s.%d-%llx", path, getpid(),
                                static_cast<unsigned long long>(base::ticks()));
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof beside_) return ENAMETOOLONG;
  }
  descriptor_ = open_new(overwrite ? beside_ : path_);
  if (descriptor_ < 0) return errno;
  if (system.identify(descriptor_, &id_) == 0) return 0;
  const int error = errno;
  discard();
  return error;
}

int File::settle() noexcept {
  if (beside_[0] != 0 && system.rename(beside_, path_) != 0) return errno;
  beside_[0] = 0;
  return 0;
}

void File::discard() noexcept {
  system.unlink(beside_[0] != 0 ? beside_ : path_);
  if (descriptor_ >= 0) system.close(descriptor_);
  descriptor_ = -1;
}

bool File::is_ours() const noexcept {
  base::FileId id;
  return descriptor_ >= 0 && system.identify(descriptor_, &id) == 0 && id == id_;
}

int File::reserve(std::uint64_t offset, std::size_t size, Pages pages) noexcept {
  if (!is_ours()) return EBADF;
  if (exceeds_limit(offset + size)) return EFBIG;
  for (int attempt = 0; !writes_zeros_; ++attempt) {
    if (system.fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size)) == 0) {
      // There is room now: if this fails, pages are made when they are touched.
      if (pages == Pages::written) static_cast<void>(write_zeros(offset, size));
      return 0;
    }
    if (errno == EOPNOTSUPP || errno == ENOSYS) writes_zeros_ = true;
    if (writes_zeros_) break;
    if (errno != EINTR || attempt == base::kMostInterruptions) return errno;
  }
  return write_zeros(offset, size);
}

// A hole would be filled when it is touched, and a full disk would then be SIGBUS.
int File::write_zeros(std::uint64_t offset, std::size_t size) noexcept {
  static std::uint8_t zeros[256 * 1024];  // as large as a chunk: the kernel takes it as one piece
  while (size != 0) {
    const std::size_t part = std::min(size, sizeof zeros);
    if (const int error = base::write_all(descriptor_, zeros, part, static_cast<off_t>(offset))) {
      return error;
    }
    offset += part;
    size -= part;
  }
  return 0;
}

void* File::map(std::uint64_t offset, std::size_t size) noexcept {
  if (!is_ours()) {
    errno = EBADF;
    return nullptr;
  }
  void* pages = system.mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                            static_cast<off_t>(offset));
  return pages == MAP_FAILED ? nullptr : pages;
}

void File::fill(void* pages, std::size_t size) noexcept {
#ifdef MADV_POPULATE_WRITE
  constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
  constexpr int kPopulate = 23;  // since Linux 5.14; older ones refuse it
#endif
  system.madvise(pages, size, kPopulate);
}

void File::unmap(void* pages, std::size_t size) noexcept {
  if (pages != nullptr) system.munmap(pages, size);
}

int File::release() noexcept {
  const int descriptor = is_ours() ? descriptor_ : -1;
  descriptor_ = -1;
  writes_zeros_ = false;
  return descriptor;
}

// Not again after EINTR: on Linux the descriptor is gone by then.
void File::close() noexcept {
  const int descriptor = release();
  if (descriptor >= 0) system.close(descriptor);
}

}  // namespace whence::store
