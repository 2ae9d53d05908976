// functions.cpp: see functions.h.
#include "read/functions.h"

#include <limits>

#include "base/hash.h"
#include "base/line_table.h"

namespace whence::read {

std::size_t Functions::Hash::operator()(const Function& function) const noexcept {
  const IdHash hash;
  return base::mix(base::mix(hash(function.name), function.filename),
                   static_cast<std::uint64_t>(function.line.value_or(0)) * 2 + function.native);
}

std::uint32_t Functions::find_code(std::uint64_t code) {
  constexpr std::uint64_t kNear = 1 << 16;
  const std::uint32_t number = find(code, false);
  if (code < kNear) {
    if (near_.empty()) near_.assign(kNear, kNone);
    near_[code] = number;
  }
  return number;
}

std::uint32_t Functions::find(std::uint64_t what, bool native) {
  IdMap<std::uint32_t>& known = native ? by_name_ : by_code_;
  const auto found = known.find(what);
  if (found != known.end()) return found->second;
  if (!budget_.afford(3 * kEntryCost)) return kNone;
  Function function{};  // all that are not known are one
  if (native && names_.string(what) != nullptr) {
    function = {what, 0, std::nullopt, true};
  } else if (const CodeEntry* code = native ? nullptr : names_.code(what)) {
    function.name = names_.string(code->qualname) != nullptr ? code->qualname : code->name;
    function.filename = code->filename;
    if (what < WorkSources::kMade || code->filename != 0) function.line = code->first_line;
    if (const SourcePlace* source = source_of(*code)) {
      function.filename = source->filename;
      function.line = source->line >= 0 ? std::optional(source->line) : std::nullopt;
    }
  }
  const auto [place, is_new] =
      numbers_.try_emplace(function, static_cast<std::uint32_t>(all_.size()));
  if (is_new) all_.push_back(function);
  known.emplace(what, place->second);
  return place->second;
}

// Where generated code came from: the source of its first line that has one.
const SourcePlace* Functions::source_of(const CodeEntry& code) noexcept {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  const LineMaps& maps = names_.line_maps();
  const std::string* table = names_.string(code.line_table);
  if (!maps.has(code.filename) || code.first_line < 0 || code.first_line > kLargest) return nullptr;
  auto last = static_cast<std::int32_t>(code.first_line);
  if (table != nullptr && decoded_.afford(table->size())) {
    base::for_each_line({reinterpret_cast<const std::uint8_t*>(table->data()), table->size()}, last,
                        [&](std::int32_t line) { last = std::max(last, line); });
  }
  const auto places = maps.first_places(code.filename, code.first_line, last);
  const bool is_known = !places.empty() && names_.string(places.front().filename) != nullptr;
  return is_known ? &places.front() : nullptr;
}

}  // namespace whence::read
