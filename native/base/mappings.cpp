// mappings.cpp: see mappings.h.
#include "base/mappings.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/not_cancelled.h"
#include "base/pages.h"
#include "base/system.h"

namespace whence::base {
namespace {

constexpr std::size_t kMost = 64 * 1024;  // as many mappings as a process may have by default
constexpr std::size_t kBlock = 8192;      // more than the longest line

}  // namespace

ReadOnlyPages::~ReadOnlyPages() {
  if (ranges_ != nullptr) unmap_pages(ranges_, kMost * sizeof(Range));
}

bool ReadOnlyPages::touch(std::uintptr_t begin, std::uintptr_t end) noexcept {
  if (!read_) read();
  const std::span ranges(ranges_, count_);
  const auto next =
      std::upper_bound(ranges.begin(), ranges.end(), begin,
                       [](std::uintptr_t at, const Range& range) { return at < range.end; });
  return next != ranges.end() && next->begin < end;
}

// Line by line; the file may be longer than any buffer, and reading it again would show another.
void ReadOnlyPages::read() noexcept {
  read_ = true;
  const NotCancelled not_cancelled;
  const int before = errno;
  ranges_ = static_cast<Range*>(map_pages(kMost * sizeof(Range)));
  const int file = system.open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
  char text[kBlock + 1];
  std::size_t held = 0;
  off_t offset = 0;
  while (ranges_ != nullptr && file >= 0) {
    const ssize_t got = system.pread(file, text + held, kBlock - held, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    offset += got;
    held += static_cast<std::size_t>(got);
    text[held] = 0;
    char* line = text;
    while (char* end = std::strchr(line, '\n')) {
      *end = 0;
      take(line);
      line = end + 1;
    }
    held -= static_cast<std::size_t>(line - text);
    if (held == kBlock) break;
    std::memmove(text, line, held);
  }
  if (file >= 0) system.close(file);
  errno = before;
}

// "7f0c1a000000-7f0c1a021000 r--p ...". Neighbours that are both read-only are one range.
void ReadOnlyPages::take(const char* line) noexcept {
  char* end = nullptr;
  const std::uintptr_t from = std::strtoull(line, &end, 16);
  if (*end != '-') return;
  const std::uintptr_t to = std::strtoull(end + 1, &end, 16);
  if (std::strncmp(end, " r--", 4) != 0) return;
  if (count_ != 0 && ranges_[count_ - 1].end == from) {
    ranges_[count_ - 1].end = to;
  } else if (count_ != kMost) {
    ranges_[count_++] = {from, to};
  }
}

}  // namespace whence::base
