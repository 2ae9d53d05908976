// input.cpp: see input.h.
#include "read/input.h"

#include <algorithm>
#include <cstring>

#include "base/system.h"

namespace whence::read {

Input Input::of_file(int file, std::uint64_t begin, std::uint64_t size) noexcept {
  Input input;
  off_t there = 0;
  if (base::system.fstat_size(file, &there) != 0 || there < 0) there = 0;
  input.file_ = file;
  input.begin_ = std::min(begin, static_cast<std::uint64_t>(there));
  input.size_ = std::min(size, static_cast<std::uint64_t>(there) - input.begin_);
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
  const ssize_t got = base::read_all(file_, to, size, static_cast<off_t>(begin_ + offset));
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

}  // namespace whence::read
