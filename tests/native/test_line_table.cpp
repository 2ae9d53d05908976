// test_line_table.cpp: hostile tables. What real ones say is compared with CPython in
// test_line_tables.py.
#include <cstdlib>

#include "base/line_table.h"
#include "check.h"

using whence::base::first_at_same_place;
using whence::base::locate;
using whence::base::Location;
constexpr auto kUnknown = Location::kUnknown;

TEST(an_empty_table_knows_nothing) {
  CHECK(locate({}, 5, 0) == Location{});
  CHECK((locate({}, 5, -1) == Location{5, 5, kUnknown, kUnknown}));
}

TEST(each_kind_of_entry_is_read) {
  const std::uint8_t table[] = {
      0x80 | (2 << 3) | 1, 0x35,                  // kind 2, two units: columns 19 to 24
      0x80 | (11 << 3),    4,    9,               // kind 11: next line, columns 4 to 9
      0x80 | (13 << 3),    0x05,                  // kind 13: two lines back
      0x80 | (14 << 3),    0x06, 2, 11, 0x41, 1,  // kind 14: 3 on, ends 2 later, columns 10 to 64
      0x80 | (15 << 3),                           // kind 15: nothing
  };
  CHECK((locate(table, 100, 0) == Location{100, 100, 19, 24}));
  CHECK((locate(table, 100, 2) == Location{100, 100, 19, 24}));
  CHECK((locate(table, 100, 4) == Location{101, 101, 4, 9}));
  CHECK((locate(table, 100, 6) == Location{99, 99, kUnknown, kUnknown}));
  CHECK((locate(table, 100, 8) == Location{102, 104, 10, 64}));
  CHECK(locate(table, 100, 10) == Location{});
  CHECK(locate(table, 100, 12) == Location{});
}

TEST(any_bytes_are_safe) {
  std::srand(1);
  std::uint8_t table[64];
  for (int round = 0; round < 200'000; ++round) {
    for (std::uint8_t& byte : table) byte = static_cast<std::uint8_t>(std::rand());
    const auto size = static_cast<std::size_t>(std::rand() % 65);
    (void)locate({table, size}, std::rand(), std::rand() % 2000);
  }
}

TEST(offsets_move_to_the_first_of_their_place) {
  const std::uint8_t table[] = {
      0x80 | (11 << 3) | 1, 4,    9,   // offsets 0 and 2: next line, columns 4 to 9
      0x80 | (10 << 3),     4,    9,   // offset 4: the same place
      0x80 | (10 << 3),     4,    10,  // offset 6: another
      0x80 | (13 << 3),     0x05,      // offset 8: two lines back, no columns; not "no line at all"
      0x80 | (15 << 3),                // offset 10: no line at all
  };
  const std::int32_t first[] = {0, 0, 0, 6, 8, 10};
  for (std::int32_t unit = 0; unit < 6; ++unit) {
    CHECK(first_at_same_place(table, 1, 2 * unit) == first[unit]);
  }
  CHECK(first_at_same_place(table, 1, 12) == 12);
  CHECK(first_at_same_place(table, 1, -1) == -1);
}
