// handle_texts.cpp: see handle_texts.h.
#include "read/handle_texts.h"

#include <algorithm>

namespace whence::read {
namespace {

using handles::kNone;

constexpr std::size_t kMostCalls = 500;

std::string_view short_name(std::string_view type) noexcept {
  return type.substr(type.rfind('.') + 1);
}

}  // namespace

std::string_view text_of(const handles::Columns& columns, std::uint32_t string) noexcept {
  return string != kNone ? columns.strings[string].substr(0, kLongestText) : "<unknown>";
}

std::vector<const handles::Call*> calls_of(const handles::Columns& columns, std::uint32_t stack) {
  std::vector<const handles::Call*> calls;
  for (; stack != kNone && calls.size() < kMostCalls; stack = columns.calls[stack].callee) {
    calls.push_back(&columns.calls[stack]);
  }
  return calls;
}

std::vector<Level> levels_of(const handles::Columns& columns, std::uint32_t stack) {
  const std::string_view top = short_name(text_of(columns, columns.top));
  std::vector<Level> levels{{"top", top, {}, columns.top != kNone}};
  for (const handles::Call* call : calls_of(columns, stack)) {
    levels.push_back({text_of(columns, call->instance), short_name(text_of(columns, call->type)),
                      text_of(columns, call->function),
                      call->type != kNone || call->instance != kNone});
  }
  return levels;
}

std::string hierarchy(std::span<const Level> levels) {
  if (std::ranges::none_of(levels, &Level::known)) return {};
  std::string text;
  for (const Level& level : levels) {
    if (!text.empty()) text += '.';
    text += level.instance;
    text += '(';
    text += level.type;
    text += ')';
    if (level.function.data() == nullptr) continue;
    text += "::";
    text += level.function;
  }
  return text;
}

std::string_view file_of(const handles::Columns& columns, const handles::Record& record) noexcept {
  if (record.range == kNone) return {};
  return text_of(columns, columns.ranges[record.range].filename);
}

std::string place_text(const handles::Columns& columns, const handles::Record& record,
                       std::string_view own) {
  std::string text(text_of(columns, record.kind));
  if (record.range == kNone) return text;
  const std::string_view file = file_of(columns, record);
  text += " at ";
  text += file == own ? "line " : file;
  if (file != own) text += ':';
  text += std::to_string(columns.ranges[record.range].line);
  return text;
}

}  // namespace whence::read
