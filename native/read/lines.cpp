// lines.cpp: see lines.h.
#include "read/lines.h"

#include <limits>
#include <span>

#include "base/hash.h"

namespace whence::read {
namespace {

constexpr std::size_t kPlaces = 1 << 12;
constexpr std::uint64_t kLeastBytes = 256u << 20;  // a second or so
constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();

}  // namespace

Lines::Lines(const Names& names, std::uint64_t file_size)
    : names_(names), bytes_(kLeastBytes, file_size), known_(kPlaces) {}

std::optional<std::int32_t> Lines::line(std::uint64_t code, std::uint64_t offset) {
  if (offset > kMost) return std::nullopt;
  const base::Location place = location(code, static_cast<std::int64_t>(offset));
  if (place.line == base::Location::kUnknown) return std::nullopt;
  return place.line;
}

base::Location Lines::location(std::uint64_t code, std::int64_t offset) {
  Known& place = known_[base::mix(code, static_cast<std::uint64_t>(offset)) % kPlaces];
  if (!place.known || place.code != code || place.offset != offset) {
    place = {code, offset, decode(code, offset), true};
  }
  return place.place;
}

base::Location Lines::decode(std::uint64_t code, std::int64_t offset) {
  const CodeEntry* entry = names_.code(code);
  const std::string* table = entry != nullptr ? names_.string(entry->line_table) : nullptr;
  if (table == nullptr || offset < -1 || offset > std::int64_t{kMost}) return {};
  if (!bytes_.afford(table->size())) return {};
  return base::locate({reinterpret_cast<const std::uint8_t*>(table->data()), table->size()},
                      static_cast<std::int32_t>(entry->first_line),
                      static_cast<std::int32_t>(offset));
}

}  // namespace whence::read
