// safe_read.h: reading memory that may not be there.
//
// Threads: one per reader. Allocates: two file descriptors, closed with the reader (and on exec).
// Fails by: false. The kernel copies the bytes through a pipe and reports a bad address as an error
// where a load would have been a fault.
#pragma once

#include <cstddef>
#include <cstdint>

namespace whence::cpython {

class SafeReader {
 public:
  SafeReader() noexcept;
  ~SafeReader();
  SafeReader(const SafeReader&) = delete;
  SafeReader& operator=(const SafeReader&) = delete;

  [[nodiscard]] bool usable() const noexcept { return ends_[0] >= 0; }

  template <class T>
  [[nodiscard]] bool read(std::uintptr_t address, T& value) const noexcept {
    return copy(address, &value, sizeof value);
  }

 private:
  [[nodiscard]] bool copy(std::uintptr_t address, void* to, std::size_t size) const noexcept;

  int ends_[2] = {-1, -1};
};

}  // namespace whence::cpython
