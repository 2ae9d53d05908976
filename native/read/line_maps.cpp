// line_maps.cpp: see line_maps.h.
#include "read/line_maps.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/varint.h"

namespace whence::read {
namespace {

constexpr std::uint64_t kLargestLine = std::numeric_limits<std::int32_t>::max();

// Numbers one after the other; none after the first that is none.
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint8_t> bytes) noexcept
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] std::optional<std::uint64_t> number() noexcept {
    std::uint64_t value;
    const std::uint8_t* after = base::get_varint(next_, end_, value);
    next_ = after != nullptr ? after : end_;
    return after != nullptr ? std::optional(value) : std::nullopt;
  }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - next_); }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

// A line or a column that is stored one larger, so that 0 is "not known".
std::int64_t read_known(std::uint64_t value) noexcept {
  return value <= kLargestLine + 1 ? static_cast<std::int64_t>(value) - 1 : -1;
}

std::optional<SourcePlace> read_place(Numbers& numbers) noexcept {
  constexpr std::size_t kNumbers = 6;
  std::uint64_t v[kNumbers];
  for (std::uint64_t& value : v) {
    const auto number = numbers.number();
    if (!number.has_value()) return std::nullopt;
    value = *number;
  }
  return SourcePlace{
      v[0], v[1], read_known(v[2]), read_known(v[3]), read_known(v[4]), read_known(v[5])};
}

}  // namespace

void LineMaps::add(std::uint64_t file, std::span<const std::uint8_t> part, Budget& budget) {
  Numbers numbers(part);
  const auto number = numbers.number();
  if (!number.has_value() || file == 0) return;
  const auto known = maps_.find(file);
  if (known == maps_.end() && !budget.afford(2 * kEntryCost)) return;
  LineMap& map = known != maps_.end() ? known->second : maps_[file];
  if (*number < map.number) return;
  if (*number > map.number) map = {*number, {}};
  for (std::int64_t before = -1;;) {
    const auto line = numbers.number(), count = numbers.number();
    // A place takes at least a byte for each of its numbers.
    if (!count.has_value() || *count > numbers.left() || *line > kLargestLine ||
        static_cast<std::int64_t>(*line) <= before) {
      return;
    }
    const std::size_t kept = std::min<std::uint64_t>(*count, kMostPlaces);
    if (!budget.afford(2 * kEntryCost + kept * sizeof(SourcePlace))) return;
    std::vector<SourcePlace> places;
    places.reserve(kept);
    for (std::uint64_t i = 0; i < *count; ++i) {
      const auto place = read_place(numbers);
      if (!place.has_value()) return;
      if (i < kept) places.push_back(*place);
    }
    before = static_cast<std::int64_t>(*line);
    map.entries.insert_or_assign(before, std::move(places));
  }
}

// Of entries with no places that follow one another the first says it all: whoever looks for the
// next place passes over one at most.
void LineMaps::finish() {
  for (auto& [file, map] : maps_) {
    bool was_empty = true;
    std::erase_if(map.entries, [&](const auto& entry) {
      return std::exchange(was_empty, entry.second.empty()) && entry.second.empty();
    });
  }
}

std::span<const SourcePlace> LineMaps::places(std::uint64_t file,
                                              std::int64_t line) const noexcept {
  const auto found = maps_.find(file);
  if (found == maps_.end()) return {};
  const auto after = found->second.entries.upper_bound(line);
  if (after == found->second.entries.begin()) return {};
  return std::prev(after)->second;
}

std::span<const SourcePlace> LineMaps::first_places(std::uint64_t file, std::int64_t from,
                                                    std::int64_t to) const noexcept {
  const std::span<const SourcePlace> here = places(file, from);
  const auto found = maps_.find(file);
  if (!here.empty() || found == maps_.end()) return here;
  const auto& entries = found->second.entries;
  for (auto next = entries.upper_bound(from); next != entries.end() && next->first <= to; ++next) {
    if (!next->second.empty()) return next->second;
  }
  return {};
}

}  // namespace whence::read
