// test_byte_pool.cpp: equal bytes have one number, and stay.
#include <string>
#include <vector>

#include "base/byte_pool.h"
#include "check.h"

using whence::base::BytePool;
using whence::base::UnicodeView;

static std::span<const std::uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(equal_bytes_have_one_number) {
  static BytePool pool;
  std::vector<BytePool::Ref> refs;
  for (int i = 0; i < 20'000; ++i) refs.push_back(pool.intern(bytes("name " + std::to_string(i))));
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = "name " + std::to_string(i);
    CHECK(pool.intern(bytes(text)) == refs[static_cast<std::size_t>(i)]);
    CHECK(pool.get(refs[static_cast<std::size_t>(i)]) == text);
  }
}

TEST(empty_and_huge_strings_are_kept) {
  static BytePool pool;
  const auto empty = pool.intern(bytes(""));
  const std::string huge(3'000'000, 'x');
  const auto large = pool.intern(bytes(huge));
  CHECK(pool.get(empty).empty());
  CHECK(pool.get(large) == huge);
  CHECK(pool.intern(bytes("")) == empty);
  CHECK(pool.intern(bytes(huge)) == large);
}

TEST(text_is_kept_as_utf8) {
  static BytePool pool;
  const std::uint16_t wide[] = {'a', 0xE4, 0x20AC, 0xDC80};
  const auto ref = pool.intern(UnicodeView{wide, 4, 2});
  CHECK(pool.get(ref) == "a\xC3\xA4\xE2\x82\xAC\xED\xB2\x80");
}
