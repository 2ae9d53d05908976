// libraries.h: which loaded library an address is in.
//
// Threads: any, also inside a signal handler. No lock is taken where the C library has the means
// (glibc from 2.35 on); else the loader's lock on its list.
// Allocates: never. Fails by: not finding it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "unwind/registers.h"

namespace whence::unwind {

struct Library {
  Address begin, end;
  Address table;  // .eh_frame_hdr; 0: it has none
};

[[nodiscard]] std::optional<Library> find_library(Address pc) noexcept;

// Does the file of the library that `pc` is in have a name that begins with this? In little stack.
[[nodiscard]] bool is_in_library(Address pc, std::string_view name) noexcept;

struct Description {
  static constexpr std::size_t kLongestPath = 4096, kLongestBuildId = 64;

  Address bias = 0;  // what was added to the addresses in the file
  char path[kLongestPath] = {};
  std::uint8_t build_id[kLongestBuildId] = {};
  std::size_t build_id_size = 0;  // 0: it has none
};
// False: no library is there.
[[nodiscard]] bool describe_library(Address pc, Description& description) noexcept;

}  // namespace whence::unwind
