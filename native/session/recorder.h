// recorder.h: the recording of this process, as the binding sees it: begun, told about, ended.
//
// Threads: any; the caller sees to it that start(), stop() and dump() do not overlap.
// Allocates: by mmap only. Fails by: an errno.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/store.h"

namespace whence::session {

[[nodiscard]] int start(const store::Options& options) noexcept;
// A fact about the recording as a whole.
void tell(std::string_view key, std::string_view value) noexcept;
// The file's descriptor, for the caller to close; -1 if there is none.
[[nodiscard]] int stop() noexcept;

// A copy of the recording as it is now, in a new file: made as safely as the recording itself, and
// gone again if it fails.
[[nodiscard]] int dump(const char* path, bool overwrite) noexcept;

// Would another path or another option help? Else the machine is out of something, which is no
// reason to stop the program.
[[nodiscard]] bool is_users_error(int error) noexcept;

}  // namespace whence::session
