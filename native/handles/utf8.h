// utf8.h: is this text?
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include <string_view>

namespace whence::handles {

// What Python decodes with "surrogatepass": UTF-8 in its shortest form, lone surrogates included.
[[nodiscard]] bool is_text(std::string_view bytes) noexcept;

}  // namespace whence::handles
