// modules.h: native code by module and place, for as long as the process lives.
//
// Threads: any. Looking a module up by its number takes no lock; a new one takes the registry's
// (rank `modules`).
// Allocates: by mmap. Fails by: kNoModule, counted as a frame without a name.
//
// A native frame is kept as the number of a module and an address in its file: that says the same
// when the library is loaded somewhere else, in another process, on another machine. The number
// stands for a file and its build id. Code that is in no file (made at run time) has a module for
// each 4 GB of addresses.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/byte_pool.h"
#include "base/lock.h"
#include "base/segments.h"
#include "stacks/mixed_frames.h"
#include "unwind/rule_cache.h"

namespace whence::stacks {

inline constexpr unwind::FrameName kNameless = 0;
inline constexpr unwind::FrameName kOurs = ~unwind::FrameName{0};  // this library's: never shown

struct Module {
  base::BytePool::Ref path;
  base::BytePool::Ref build_id;  // in hexadecimal; empty if it has none
};

class Modules {
 public:
  // (module << 32 | address in its file) of an instruction; kOurs, or kNameless for lack of memory.
  [[nodiscard]] unwind::FrameName name(unwind::Address pc) noexcept;
  // Any number that was given.
  [[nodiscard]] const Module& operator[](std::uint32_t module) const noexcept {
    return *entries_.at(module);
  }
  [[nodiscard]] std::uint32_t count() const noexcept {
    return count_.load(std::memory_order_acquire);
  }

  // For fork() alone.
  [[nodiscard]] base::Lock& lock() noexcept { return lock_; }

 private:
  static constexpr std::uint32_t kMost = 1 << 20;

  [[nodiscard]] std::uint32_t intern(std::string_view path, std::string_view build_id) noexcept;
  [[nodiscard]] unwind::FrameName anonymous(unwind::Address pc) noexcept;

  base::Lock lock_{base::Rank::modules};
  base::Segments<Module, 6> entries_;  // from 1 on; written under lock_ before the number is given
  std::atomic<std::uint32_t> count_ = 0;  // written under lock_
};

[[nodiscard]] Modules& modules() noexcept;

}  // namespace whence::stacks
