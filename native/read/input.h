// input.h: the bytes of a recording: a file or a part of one, or memory.
//
// Threads: any; nothing changes but by close(). Allocates: never.
// Fails by: read() returns how many bytes there were, which is fewer at the end, after an error of
// the file system, and after close().
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace whence::read {

class Input {
 public:
  static constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

  // The file stays the caller's. Its size is taken now: what is appended later is not seen.
  [[nodiscard]] static Input of_file(int file, std::uint64_t begin = 0,
                                     std::uint64_t size = kAll) noexcept;
  [[nodiscard]] static Input of_memory(std::span<const std::uint8_t> bytes) noexcept;

  // As far as they are there.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // Copies: bytes that another process may change are looked at once only.
  [[nodiscard]] std::size_t read(std::uint64_t offset, void* to, std::size_t size) const noexcept;
  void close() noexcept { size_ = 0; }

 private:
  int file_ = -1;
  const std::uint8_t* memory_ = nullptr;
  std::uint64_t begin_ = 0;  // in the file
  std::uint64_t size_ = 0;
};

}  // namespace whence::read
