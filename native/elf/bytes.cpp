// bytes.cpp: see bytes.h.
#include "elf/bytes.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/system.h"

namespace whence::elf {

const char* text_of(Problem problem) noexcept {
  switch (problem) {
    case Problem::none: return "is fine";
    case Problem::not_read: return "cannot be read";
    case Problem::no_elf: return "is no ELF file";
    case Problem::other_format: return "is an ELF file, but not of 64 bits and little-endian";
    case Problem::other_machine: return "is an ELF file, but neither for x86-64 nor for aarch64";
    case Problem::other_type: return "is an ELF file, but neither a program nor a library";
    case Problem::cut: return "is an ELF file of which a part is missing";
    case Problem::damaged: return "is a damaged ELF file";
    case Problem::too_large: break;
  }
  return "is an ELF file with larger tables than are read";
}

Bytes::Bytes(Bytes&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Bytes& Bytes::operator=(Bytes&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

Bytes::~Bytes() {
  if (file_ >= 0) base::system.close(file_);
}

Problem Bytes::open(const char* path, Bytes& bytes) noexcept {
  Bytes opened;
  opened.file_ = base::system.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  off_t size = 0;
  if (opened.file_ < 0 || base::system.fstat_size(opened.file_, &size) != 0) {
    return Problem::not_read;
  }
  opened.size_ = static_cast<std::uint64_t>(std::max<off_t>(size, 0));
  bytes = std::move(opened);
  return Problem::none;
}

Bytes Bytes::of_memory(std::span<const std::uint8_t> memory) noexcept {
  Bytes bytes;
  bytes.memory_ = memory.data();
  bytes.size_ = memory.size();
  return bytes;
}

std::size_t Bytes::read_some(std::uint64_t offset, void* to, std::size_t size) const noexcept {
  errno = 0;
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

Problem Bytes::read(std::uint64_t offset, void* to, std::size_t size) const noexcept {
  if (read_some(offset, to, size) == size) return Problem::none;
  return errno != 0 ? Problem::not_read : Problem::cut;
}

}  // namespace whence::elf
