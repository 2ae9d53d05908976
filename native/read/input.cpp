// input.cpp: see input.h.
#include "read/input.h"

#include <algorithm>
#include <cstring>

#include "base/system.h"

namespace whence::read {

Input Input::of_file(int file) noexcept {
  Input input;
  off_t size = 0;
  if (base::system.fstat_size(file, &size) != 0 || size < 0) size = 0;
  input.file_ = file;
  input.size_ = static_cast<std::uint64_t>(size);
  return input;
}

Input Input::of_memory(std::span<const std::uint8_t> bytes) noexcept {
  Input input;
  input.memory_ = bytes.data();
  input.size_ = bytes.size();
  return input;
}

std::size_t Input::read(std::uint64_t offset, void* to, std::size_t size) const noexcept {
  if (offset >= size_) return 0;
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - offset));
  if (size == 0) return 0;
  if (memory_ != nullptr) {
    std::memcpy(to, memory_ + offset, size);
    return size;
  }
  const ssize_t got = base::read_all(file_, to, size, static_cast<off_t>(offset));
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

}  // namespace whence::read
