// fuzz_line_table.cpp: any bytes may be decoded as a line table.
#include <cstring>

#include "base/line_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::int32_t numbers[2] = {};
  if (size < sizeof numbers) return 0;
  std::memcpy(numbers, data, sizeof numbers);
  const std::span<const std::uint8_t> table(data + sizeof numbers, size - sizeof numbers);
  const auto place = whence::base::locate(table, numbers[0], numbers[1]);
  const auto first = whence::base::first_at_same_place(table, numbers[0], numbers[1]);
  // Moving to the first offset of the place must not change the place.
  if (first != numbers[1] && whence::base::locate(table, numbers[0], first) != place) {
    __builtin_trap();
  }
  return 0;
}
