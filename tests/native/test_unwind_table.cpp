// test_unwind_table.cpp: unwind tables are searched, and read whatever they say.
#include <cstring>
#include <vector>

#include "check.h"
#include "unwind/table.h"

using namespace whence::unwind;

namespace {

using Raw = std::vector<std::uint8_t>;

constexpr Rule kUnsupported{Kind::unsupported};

[[nodiscard]] Rule frame(std::int32_t cfa) {
  Rule rule{Kind::frame};
  rule.cfa = cfa;
  rule.link = -1;
  return rule;
}

// A header with one row, a CIE and an FDE; the function begins kFunction bytes behind the header.
class Table {
 public:
  static constexpr std::int32_t kFunction = 4096, kSize = 64;

  explicit Table(const char* letters, const Raw& extra, std::uint8_t version = 1,
                 std::uint8_t rows = 0x3B) {
    put<std::uint32_t>(0x3B031B01);  // version 1; pc-relative, four bytes, rows from the header
    raw_[3] = rows;
    put<std::int32_t>(0);
    put<std::uint32_t>(1);
    put<std::int32_t>(kFunction);
    const std::size_t entry_place = raw_.size();
    put<std::int32_t>(0);
    const std::size_t common = begin_entry();
    put<std::uint32_t>(0);
    put(version);
    add({letters, letters + std::strlen(letters) + 1});
    add({1, 0x78, static_cast<std::uint8_t>(kReturn)});
    if (letters[0] == 'z') put(static_cast<std::uint8_t>(extra.size()));
    add(extra);
    // The CFA is one word out, and that word is the return address.
    add({0x0C, static_cast<std::uint8_t>(kStackPointer), 8,
         static_cast<std::uint8_t>(0x80 | kReturn), 1});
    end_entry(common);
    const std::size_t own = begin_entry();
    std::memcpy(&raw_[entry_place], &own, 4);
    put(static_cast<std::uint32_t>(raw_.size() - common));
    put(kFunction - static_cast<std::int32_t>(raw_.size()));
    put(kSize);
    if (letters[0] == 'z') put<std::uint8_t>(0);
    add({0x44, 0x0E, 16});
    end_entry(own);
  }

  [[nodiscard]] Rule at(Address offset) const {
    const auto begin = reinterpret_cast<Address>(raw_.data());
    return find_rule({begin, begin + 2 * kFunction, begin}, begin + kFunction + offset);
  }
  [[nodiscard]] Raw& raw() { return raw_; }

 private:
  void add(const Raw& bytes) {
    for (const std::uint8_t byte : bytes) raw_.push_back(byte);
  }
  template <class T>
  void put(T value) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    add({bytes, bytes + sizeof value});
  }
  [[nodiscard]] std::size_t begin_entry() {
    put<std::uint32_t>(0);
    return raw_.size() - 4;
  }
  void end_entry(std::size_t at) {
    const auto length = static_cast<std::uint32_t>(raw_.size() - at - 4);
    std::memcpy(&raw_[at], &length, sizeof length);
  }

  Raw raw_;
};

}  // namespace

TEST(a_table_is_searched) {
  const Table table("zR", {0x1B});
  CHECK(table.at(0) == frame(8));
  CHECK(table.at(4) == frame(16));
  CHECK(table.at(Table::kSize - 1) == frame(16));
  CHECK(table.at(Table::kSize) == kUnsupported);
  CHECK(table.at(static_cast<Address>(-1)) == kUnsupported);
}

TEST(a_signal_is_where_the_code_returns_from_one) {
#if defined(__x86_64__)
  const Raw code = {0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05};
  constexpr std::size_t kBefore = 1;
#else
  const Raw code = {0x68, 0x11, 0x80, 0xD2, 0x01, 0x00, 0x00, 0xD4};
  constexpr std::size_t kBefore = 4;
#endif
  for (const std::size_t early : {std::size_t{0}, kBefore, 2 * kBefore}) {
    for (const char* letters : {"zRS", "zR"}) {
      Table table(letters, {0x1B});
      table.raw().resize(Table::kFunction + Table::kSize);
      std::memcpy(&table.raw()[Table::kFunction + early], code.data(), code.size());
      const bool is_signal = letters[2] == 'S' && early <= kBefore;
      CHECK(table.at(0) == (is_signal ? Rule{Kind::signal} : frame(8)));
      CHECK(table.at(4) == (is_signal ? Rule{Kind::signal} : frame(16)));
    }
  }
}

TEST(letters_say_what_an_entry_has) {
  CHECK(Table("zRS", {0x1B}).at(4) == frame(16));
  CHECK(Table("zPLR", {0x03, 1, 2, 3, 4, 0x1B, 0x1B}).at(4) == frame(16));
  CHECK(Table("zPLR", {0x9B, 1, 2, 3, 4, 0x1B, 0x1B}).at(4) == frame(16));
  CHECK(Table("zRB", {0x1B}).at(4) == frame(16));
  CHECK(Table("zRG", {0x1B}).at(4) == frame(16));
  CHECK(Table("zR", {0x1B}, 3).at(4) == frame(16));
  CHECK(Table("zRX", {0x1B}).at(4) == kUnsupported);
  CHECK(Table("eh", {}).at(4) == kUnsupported);
  CHECK(Table("zR", {0x1B}, 2).at(4) == kUnsupported);
  CHECK(Table("zR", {0x1B}, 1, 0x1B).at(4) == kUnsupported);
  CHECK(Table("zRRRRRRRRR", {0x1B}).at(4) == kUnsupported);
  CHECK(Table("zR", {0xFF}).at(4) == kUnsupported);
}

TEST(a_table_with_any_bytes_changed_is_read_to_its_end) {
  const Table whole("zPLR", {0x03, 1, 2, 3, 4, 0x1B, 0x1B});
  std::uint64_t state = 7;
  for (int i = 0; i < 20000; ++i) {
    Table table = whole;
    for (int n = 0; n <= i % 4; ++n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      table.raw()[state % table.raw().size()] = static_cast<std::uint8_t>(state >> 56);
    }
    static_cast<void>(table.at(state >> 58));
  }
  CHECK(find_rule({0, 0, 0}, 0) == kUnsupported);
  CHECK(find_rule({8, 4096, 8}, 64) == kUnsupported);
}
