// line_table.cpp: see line_table.h.
//
// The table is a run of entries, one for each stretch of instructions:
//
//   1 kkkk lll   k: kind, l: code units in the stretch, less one; then 0 to 4 further fields
//
//   kind 0-9     same line, column 8k + (next byte >> 4), as wide as its lower 4 bits say
//   kind 10-12   line + (k - 10), column and end column in a byte each
//   kind 13      line + svarint, no columns
//   kind 14      line + svarint, end line + varint, column + 1 and end column + 1 as varints
//   kind 15      no location at all
//
// varints have 6 bits a byte, lowest first, bit 6 set if more follow; svarints have their sign in
// bit 0.
#include "base/line_table.h"

namespace whence::base {
namespace {

class Cursor {
 public:
  explicit Cursor(std::span<const std::uint8_t> table) noexcept : table_(table) {}

  [[nodiscard]] bool at_end() const noexcept { return next_ >= table_.size(); }
  std::uint32_t byte() noexcept { return at_end() ? 0 : table_[next_++]; }

  std::uint32_t varint() noexcept {
    std::uint32_t value = 0;
    for (unsigned shift = 0;; shift += 6) {
      const std::uint32_t byte = this->byte();
      if (shift < 32) value |= (byte & 0x3F) << shift;
      if ((byte & 0x40) == 0) return value;
    }
  }

  std::int32_t svarint() noexcept {
    const std::uint32_t value = varint();
    const auto magnitude = static_cast<std::int32_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  }

 private:
  std::span<const std::uint8_t> table_;
  std::size_t next_ = 0;
};

// Lines of hostile tables may overflow; they wrap instead.
std::int32_t plus(std::int32_t a, std::int32_t b) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

// Reads one entry's fields; `line` is the running line, which all kinds but 15 refer to.
Location read_entry(Cursor& cursor, unsigned kind, std::int32_t& line) noexcept {
  Location place;
  if (kind == 15) return place;
  if (kind >= 13) {
    line = plus(line, cursor.svarint());
    place.line = place.end_line = line;
    if (kind == 14) {
      place.end_line = plus(line, static_cast<std::int32_t>(cursor.varint()));
      place.column = plus(static_cast<std::int32_t>(cursor.varint()), -1);
      place.end_column = plus(static_cast<std::int32_t>(cursor.varint()), -1);
    }
    return place;
  }
  if (kind >= 10) {
    line = plus(line, static_cast<std::int32_t>(kind - 10));
    place.column = static_cast<std::int32_t>(cursor.byte());
    place.end_column = static_cast<std::int32_t>(cursor.byte());
  } else {
    const std::uint32_t next = cursor.byte();
    place.column = static_cast<std::int32_t>(kind * 8 + (next >> 4));
    place.end_column = plus(place.column, static_cast<std::int32_t>(next & 15));
  }
  place.line = place.end_line = line;
  return place;
}

// Calls visit(start, end, location) for each entry until it returns false.
template <class Visit>
void for_each_entry(std::span<const std::uint8_t> table, std::int32_t first_line, Visit&& visit) {
  constexpr std::int64_t kCodeUnit = 2;
  Cursor cursor(table);
  std::int32_t line = first_line;
  for (std::int64_t start = 0; !cursor.at_end();) {
    const std::uint32_t head = cursor.byte();
    const std::int64_t end = start + ((head & 7) + 1) * kCodeUnit;
    const Location place = read_entry(cursor, (head >> 3) & 15, line);
    if (!visit(start, end, place)) return;
    start = end;
  }
}

}  // namespace

Location locate(std::span<const std::uint8_t> table, std::int32_t first_line,
                std::int32_t offset) noexcept {
  if (offset < 0) return {first_line, first_line, Location::kUnknown, Location::kUnknown};
  Location found;
  for_each_entry(table, first_line, [&](std::int64_t, std::int64_t end, const Location& place) {
    if (offset >= end) return true;
    found = place;
    return false;
  });
  return found;
}

void detail::for_each_line(std::span<const std::uint8_t> table, std::int32_t first_line,
                           void (*visit)(void*, std::int32_t), void* to) {
  for_each_entry(table, first_line, [&](std::int64_t, std::int64_t, const Location& place) {
    if (place.line != Location::kUnknown) visit(to, place.line);
    return true;
  });
}

std::int32_t first_at_same_place(std::span<const std::uint8_t> table, std::int32_t first_line,
                                 std::int32_t offset) noexcept {
  std::int64_t first = 0;
  bool found = false;
  Location before;
  for_each_entry(table, first_line,
                 [&](std::int64_t start, std::int64_t end, const Location& place) {
                   if (start == 0 || place != before) first = start;
                   before = place;
                   found = offset < end;
                   return !found;
                 });
  return found && offset >= 0 ? static_cast<std::int32_t>(first) : offset;
}

}  // namespace whence::base
