// pages.cpp: see pages.h.
#include "base/pages.h"

#include <sys/mman.h>

#include "base/system.h"

namespace whence::base {

void* map_pages(std::size_t bytes) noexcept {
  void* pages =
      system.mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

void unmap_pages(void* pages, std::size_t bytes) noexcept {
  if (pages != nullptr) system.munmap(pages, bytes);
}

}  // namespace whence::base
