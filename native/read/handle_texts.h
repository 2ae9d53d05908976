// handle_texts.h: what a table of handles says, as words and levels.
//
// Threads: any; only arguments are touched. Allocates: what it returns. Fails by: std::bad_alloc.
//
// A hostile table may say much with few bytes: texts and lists of calls have bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handles/columns.h"

namespace whence::read {

inline constexpr std::size_t kLongestText = 200;  // of one that others are put together with

// "<unknown>" for none.
[[nodiscard]] std::string_view text_of(const handles::Columns& columns,
                                       std::uint32_t string) noexcept;
// Calls that were inlined into one another, from the outermost on.
[[nodiscard]] std::vector<const handles::Call*> calls_of(const handles::Columns& columns,
                                                         std::uint32_t stack);
[[nodiscard]] std::string_view file_of(const handles::Columns& columns,
                                       const handles::Record& record) noexcept;
// mul at line 8, or at layers.ex:8 if that is another file than `own`.
[[nodiscard]] std::string place_text(const handles::Columns& columns, const handles::Record& record,
                                     std::string_view own);

// layer(Layer)::forward, one level among modules.
struct Level {
  std::string_view instance, type, function;
  bool known;  // has anybody said anything of the module?
  bool operator==(const Level&) const = default;
};

// From the outermost on; the first is top(Model).
[[nodiscard]] std::vector<Level> levels_of(const handles::Columns& columns, std::uint32_t stack);
// top(Model).layer(Layer)::forward, or nothing if no module is known.
[[nodiscard]] std::string hierarchy(std::span<const Level> levels);

}  // namespace whence::read
