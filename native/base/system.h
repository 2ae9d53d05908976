// system.h: every call by which whence asks the kernel for something that can be refused.
//
// Threads: any. The table is written by tests only, before the code under test runs.
// Allocates: never.
// Fails by: errno, as the calls themselves.
//
// One table, so that a test can let the Nth call fail and see what becomes of the program.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace whence::base {

// Which file a descriptor leads to.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

struct System {
  int (*open)(const char* path, int flags, unsigned mode);
  int (*close)(int file);
  int (*unlink)(const char* path);
  int (*rename)(const char* from, const char* to);
  int (*fallocate)(int file, off_t offset, off_t length);
  int (*fstat_size)(int file, off_t* size);
  int (*identify)(int file, FileId* id);
  ssize_t (*pread)(int file, void* data, std::size_t size, off_t offset);
  ssize_t (*pwrite)(int file, const void* data, std::size_t size, off_t offset);
  void* (*mmap)(void* at, std::size_t size, int protection, int flags, int file, off_t offset);
  int (*munmap)(void* at, std::size_t size);
  int (*madvise)(void* at, std::size_t size, int advice);
};

extern System system;

// A call that a signal interrupts is made again, but not for ever.
inline constexpr int kMostInterruptions = 1000;

// All of it or an error: goes on after a signal or a short count. The errno, or 0.
[[nodiscard]] int write_all(int file, const void* data, std::size_t size, off_t offset) noexcept;
// How many bytes there were, up to `size`; -1 with errno set.
[[nodiscard]] ssize_t read_all(int file, void* data, std::size_t size, off_t offset) noexcept;

}  // namespace whence::base
