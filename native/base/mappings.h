// mappings.h: which pages of the process are read-only now, as the kernel says.
//
// Threads: an instance belongs to one. Allocates: pages, once, by mmap.
// Fails by: nothing is read-only, where the kernel does not say or there is no room.
#pragma once

#include <cstddef>
#include <cstdint>

namespace whence::base {

class ReadOnlyPages {
 public:
  ReadOnlyPages() = default;
  ~ReadOnlyPages();
  ReadOnlyPages(const ReadOnlyPages&) = delete;
  ReadOnlyPages& operator=(const ReadOnlyPages&) = delete;

  // Are any of these? As it is at the first question.
  [[nodiscard]] bool touch(std::uintptr_t begin, std::uintptr_t end) noexcept;

 private:
  struct Range {
    std::uintptr_t begin, end;
  };

  void read() noexcept;
  void take(const char* line) noexcept;

  Range* ranges_ = nullptr;  // by address
  std::size_t count_ = 0;
  bool read_ = false;
};

}  // namespace whence::base
