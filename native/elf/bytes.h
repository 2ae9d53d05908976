// bytes.h: the bytes of an ELF file that somebody else may write to: a file, or memory.
//
// Threads: any; nothing changes after it is made. Allocates: read() its result, never more than the
// file has. Fails by: Problem, and std::bad_alloc.
//
// Bytes are copied with pread() and looked at once they are ours. A mapping would be quicker, but
// SIGBUS ends a program that looks at a mapping of a file which was cut meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace whence::elf {

enum class Problem {
  none,
  not_read,       // errno says why
  no_elf,         // of another kind
  other_format,   // ELF of 32 bits, or big-endian
  other_machine,  // neither x86-64 nor aarch64
  other_type,     // neither a program nor a library nor what was split off one
  cut,            // what it speaks of is not there
  damaged,        // it contradicts itself
  too_large,      // more than the caps in image.h and symbols.h
};

// Words that follow the name of a file, for all but not_read.
[[nodiscard]] const char* text_of(Problem problem) noexcept;

class Bytes {
 public:
  Bytes() noexcept = default;
  Bytes(Bytes&& other) noexcept;
  Bytes& operator=(Bytes&& other) noexcept;
  ~Bytes();

  // not_read if it cannot be opened. Does not wait for a pipe that nobody writes to, but opens
  // whatever else is there: it is for the caller not to name devices.
  [[nodiscard]] static Problem open(const char* path, Bytes& bytes) noexcept;
  // The memory stays the caller's.
  [[nodiscard]] static Bytes of_memory(std::span<const std::uint8_t> memory) noexcept;

  // When it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t size) const noexcept {
    return offset <= size_ && size <= size_ - offset;
  }
  // How many bytes there were, up to `size`; fewer at the end and after an error, which errno has.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, void* to,
                                      std::size_t size) const noexcept;
  // All of it: cut or not_read if there is less.
  [[nodiscard]] Problem read(std::uint64_t offset, void* to, std::size_t size) const noexcept;

  // An array of that many; cut before anything is allocated for more than there is.
  template <class T>
  [[nodiscard]] Problem read(std::uint64_t offset, std::uint64_t count, std::vector<T>& to) const {
    if (count > size_ / sizeof(T) || !has(offset, count * sizeof(T))) return Problem::cut;
    to.resize(static_cast<std::size_t>(count));
    return read(offset, to.data(), to.size() * sizeof(T));
  }

 private:
  int file_ = -1;
  const std::uint8_t* memory_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace whence::elf
