// test_segments.cpp: elements of a growing array keep their addresses and are counted exactly.
#include <vector>

#include "base/segments.h"
#include "check.h"

using whence::base::Segments;

TEST(elements_never_move) {
  Segments<int, 4> numbers;
  std::vector<int*> addresses;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    int* element = numbers.ensure(i);
    CHECK(element != nullptr && *element == 0);
    *element = static_cast<int>(i);
    addresses.push_back(element);
  }
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    CHECK(numbers.at(i) == addresses[i]);
    CHECK(*numbers.at(i) == static_cast<int>(i));
  }
}

TEST(only_what_is_used_is_mapped) {
  Segments<char, 12> bytes;
  CHECK(bytes.bytes() == 0 && !bytes.has(0));
  CHECK(bytes.ensure(0) != nullptr);
  CHECK(bytes.bytes() == 4096 && bytes.has(4095) && !bytes.has(4096));
  CHECK(bytes.ensure(0x80000000) != nullptr);
  CHECK(bytes.has(0xFFFFFFFF) && !bytes.has(4096));
}
