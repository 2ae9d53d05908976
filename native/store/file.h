// file.h: the file of a recording: made safely, grown before it is touched, mapped in pieces.
//
// Threads: one at a time, under the store's lock.
// Allocates: by mmap.
// Fails by: an errno, 0 if all went well; reason_of() says what it means for the recording.
#pragma once

#include <limits.h>

#include <cstddef>
#include <cstdint>

#include "base/system.h"
#include "format/file.h"

namespace whence::store {

[[nodiscard]] format::Reason reason_of(int error) noexcept;

class File {
 public:
  // New, readable by its owner alone, closed on exec, never through a symbolic link. What is there
  // already stays unless `overwrite`; then the new file is made beside it, and takes its place in
  // settle(). Only files can be replaced.
  [[nodiscard]] int create(const char* path, bool overwrite) noexcept;
  [[nodiscard]] int settle() noexcept;
  // Removes what create() made, and closes it.
  void discard() noexcept;
  // Room on the disk for [offset, offset + size), so that touching it cannot fail later. `written`
  // is for whoever will write to all of it: the kernel has its pages in memory from the beginning,
  // in few pieces, instead of reading each as it is touched. That is a fifth of the time.
  enum class Pages : std::uint8_t { reserved, written };
  [[nodiscard]] int reserve(std::uint64_t offset, std::size_t size, Pages pages) noexcept;
  // nullptr with errno set.
  [[nodiscard]] void* map(std::uint64_t offset, std::size_t size) noexcept;
  // Has the kernel make all pages of a mapping now, which takes less than one after the other. For
  // whoever will write to all of them.
  static void fill(void* pages, std::size_t size) noexcept;
  static void unmap(void* pages, std::size_t size) noexcept;
  [[nodiscard]] const base::FileId& id() const noexcept { return id_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  // Programs that become daemons close every descriptor, and files that they open later get the
  // numbers of ours: is this number still our file?
  [[nodiscard]] bool is_ours() const noexcept;
  // Lets go of the file without closing it. Its descriptor, or -1 if that is not ours any more.
  int release() noexcept;
  void close() noexcept;

 private:
  [[nodiscard]] int write_zeros(std::uint64_t offset, std::size_t size) noexcept;

  int descriptor_ = -1;
  base::FileId id_;
  char path_[PATH_MAX] = {};    // where it shall be
  char beside_[PATH_MAX] = {};  // where it is until then; empty: there already
  bool writes_zeros_ = false;   // the file system cannot reserve
};

}  // namespace whence::store
