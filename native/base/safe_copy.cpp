// safe_copy.cpp: see safe_copy.h.
#include "base/safe_copy.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace whence::base {
namespace {

std::atomic<bool> forbidden = false;  // to copy from a process to itself

// No way of changing signals has this number, so the kernel reads the set, and refuses.
[[nodiscard]] bool is_readable(std::uintptr_t word) noexcept {
  constexpr int kNoWay = -1;
  constexpr std::size_t kSetBytes = 8;
  if (word == 0) return false;  // no set at all would be no error
  syscall(SYS_rt_sigprocmask, kNoWay, word, nullptr, kSetBytes);
  return errno != EFAULT;
}

[[nodiscard]] bool copy_by_pages(std::uintptr_t from, void* to, std::size_t size) noexcept {
  constexpr std::uintptr_t kPage = 4096;  // no page is smaller
  constexpr std::uintptr_t kWord = 8;
  const std::uintptr_t end = from + size;
  for (std::uintptr_t at = from & ~(kWord - 1); at < end; at = (at & ~(kPage - 1)) + kPage) {
    if (!is_readable(at)) return false;
  }
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return true;
}

[[nodiscard]] bool copy(std::uintptr_t from, void* to, std::size_t size) noexcept {
  if (!forbidden.load(std::memory_order_relaxed)) {
    const iovec local = {to, size};
    const iovec remote = {reinterpret_cast<void*>(from), size};
    const auto copied = syscall(SYS_process_vm_readv, getpid(), &local, 1ul, &remote, 1ul, 0ul);
    if (copied == static_cast<ssize_t>(size)) return true;
    if (copied >= 0 || errno == EFAULT) return false;
    forbidden.store(true, std::memory_order_relaxed);
  }
  return copy_by_pages(from, to, size);
}

}  // namespace

bool safe_copy(std::uintptr_t from, void* to, std::size_t size) noexcept {
  if (size == 0) return true;
  if (from + size < from) return false;
  const int before = errno;
  const bool copied = copy(from, to, size);
  errno = before;
  return copied;
}

}  // namespace whence::base
