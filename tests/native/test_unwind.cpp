// test_unwind.cpp: rows of unwind tables become rules, whatever their programs say.
//
// Programs are written here as bytes, so every case is on the page. Whole tables are in
// test_unwind_table.cpp, and how frames are left by rules in test_walk.cpp.
#include <initializer_list>
#include <vector>

#include "check.h"
#include "unwind/expression.h"
#include "unwind/row.h"

using namespace whence::unwind;

namespace {

using Raw = std::vector<std::uint8_t>;

constexpr auto kFp = static_cast<std::uint8_t>(kFramePointer);
constexpr auto kSp = static_cast<std::uint8_t>(kStackPointer);
constexpr auto kRa = static_cast<std::uint8_t>(kReturn);
constexpr std::uint8_t kBregFp = 0x70 + kFp, kBregSp = 0x70 + kSp;
constexpr Address kBegin = 0x10000;

[[nodiscard]] Bytes bytes_of(const Raw& raw) {
  return {reinterpret_cast<Address>(raw.data()), raw.size()};
}

[[nodiscard]] std::optional<Place> run(const Raw& raw, Address pc = 0) {
  return evaluate(bytes_of(raw), pc);
}

[[nodiscard]] bool is(const std::optional<Place>& place, Place::From from, std::int64_t offset,
                      bool indirect = false) {
  return place && place->from == from && place->offset == offset && place->indirect == indirect;
}

// What functions begin with: the CFA is one word out, and that word is the return address.
const Raw kOneWord = {0x0C, kSp, 8, static_cast<std::uint8_t>(0x80 | kRa), 1};

[[nodiscard]] Rule rule_of(const Raw& own, Address pc = kBegin, const Raw& first = kOneWord) {
  Entry entry;
  entry.data_step = -8;
  entry.return_register = kReturn;
  entry.begin = kBegin;
  entry.end = kBegin + 0x1000;
  entry.first = bytes_of(first);
  entry.own = bytes_of(own);
  return rule_at(entry, pc);
}

[[nodiscard]] Rule frame(Base base, std::int32_t cfa, std::int16_t fp = 0) {
  Rule rule{Kind::frame};
  rule.base = base;
  rule.cfa = cfa;
  rule.link = -1;
  rule.fp = fp;
  return rule;
}

constexpr Rule kUnsupported{Kind::unsupported};

}  // namespace

TEST(a_rule_comes_back_from_its_word) {
  constexpr std::int16_t kWords[] = {0, 1, -1, INT16_MAX, INT16_MIN};
  for (const std::int32_t cfa : {0, 1, -1, 8, -8, (1 << 23) - 1, -(1 << 23)}) {
    for (const std::int16_t link : kWords) {
      for (const std::int16_t fp : kWords) {
        for (unsigned bits = 0; bits < 8; ++bits) {
          for (unsigned kind = 0; kind <= static_cast<unsigned>(Kind::unsupported); ++kind) {
            const Rule rule = {static_cast<Kind>(kind),
                               (bits & 1) != 0 ? Base::fp : Base::sp,
                               (bits & 2) != 0,
                               (bits & 4) != 0,
                               cfa,
                               link,
                               fp};
            CHECK(Rule::unpack(rule.packed()) == rule);
          }
        }
      }
    }
  }
}

#if defined(__x86_64__)
// rsp + 8 + ((rip & 15) >= 11) * 8, as linkers write it for each stub of 16 bytes.
TEST(a_stub_of_the_linker_has_pushed_a_word_from_some_instruction_on) {
  const Raw stub = {kBregSp, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22};
  for (Address at = 0; at < 64; ++at) {
    CHECK(is(run(stub, 0x7000 + at), Place::From::sp, at % 16 >= 11 ? 16 : 8));
  }
  Raw program = {0x0F, static_cast<std::uint8_t>(stub.size())};
  program.insert(program.end(), stub.begin(), stub.end());
  CHECK(rule_of(program, kBegin + 10) == frame(Base::sp, 8));
  CHECK(rule_of(program, kBegin + 11) == frame(Base::sp, 16));
}
#endif

TEST(a_function_that_aligns_its_stack_keeps_the_cfa_in_memory) {
  CHECK(is(run({kBregFp, 0x78, 0x06}), Place::From::fp, -8, true));
  Rule aligned = frame(Base::fp, -8, 0);
  aligned.indirect = aligned.fp_from_fp = true;
  CHECK(rule_of({0x0F, 3, kBregFp, 0x78, 0x06, 0x10, kFp, 2, kBregFp, 0}) == aligned);
}

TEST(expressions_add_and_subtract) {
  CHECK(is(run({kBregSp, 0x10, 0x23, 0x18}), Place::From::sp, 40));
  CHECK(is(run({0x09, 0xF8, kBregSp, 0, 0x22}), Place::From::sp, -8));
  CHECK(is(run({kBregFp, 0, 0x0A, 0x00, 0x01, 0x1C}), Place::From::fp, -256));
  CHECK(is(run({0x0D, 0xFF, 0xFF, 0xFF, 0xFF}), Place::From::nothing, -1));
  CHECK(is(run({0x0C, 0xFF, 0xFF, 0xFF, 0xFF}), Place::From::nothing, 0xFFFFFFFF));
  CHECK(is(run({0x0B, 0xFE, 0xFF}), Place::From::nothing, -2));
  CHECK(is(run({0x10, 0x80, 0x01, 0x11, 0x7F, 0x22}), Place::From::nothing, 127));
}

TEST(expressions_that_are_not_understood_are_nothing) {
  const Raw wrong[] = {
      {},                              // no value
      {0x31, 0x32},                    // two
      {0x22},                          // nothing to add
      {0x31, 0x22},                    // one value to add
      {0x06},                          // nothing to look at
      {0x31, 0x06},                    // a number is no place
      {kBregFp, 0, 0x06, 0x06},        // what lies where what lies there says
      {kBregFp, 0, 0x06, 0x23, 8},     // further than what lies there
      {kBregFp, 0, kBregSp, 0, 0x22},  // two registers
      {0x31, kBregSp, 0, 0x1C},        // less a register
      {kBregSp, 0, 0x31, 0x1A},        // bits of a register
      {0x31, 0x08, 64, 0x24},          // shifted out
      {0x31, 0x09, 0xFF, 0x24},        // shifted the other way
      {0x73, 0},                       // another register
      {kBregSp},                       // cut off
      {kBregSp, 0x80},                 // in the number
      {0x0C, 1, 2, 3},                 // or here
      {0xE0},                          // unknown
      {0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30},  // too many values
  };
  for (const Raw& raw : wrong) CHECK(!run(raw));
}

TEST(sums_wrap_and_are_judged_later) {
  const Raw most = {0x10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F};  // 2^63 - 1
  Raw sum = most;
  sum.insert(sum.end(), {0x31, 0x22});
  CHECK(is(run(sum), Place::From::nothing, INT64_MIN));
  Raw less = most;
  less.insert(less.end(), {0x23, 1, 0x31, 0x1C});
  CHECK(is(run(less), Place::From::nothing, INT64_MAX));
  // More digits than a number has.
  Raw longer(30, 0xFF);
  longer[0] = 0x10;
  longer.back() = 0x7F;
  CHECK(is(run(longer), Place::From::nothing, -1));
  Raw far = {0x0F, 11, kBregSp, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x00};
  CHECK(rule_of(far) == kUnsupported);
}

TEST(any_bytes_are_an_expression_or_none) {
  std::uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    Raw raw(static_cast<std::size_t>(i % 23));
    for (auto& byte : raw) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::uint8_t>(state >> 56);
    }
    static_cast<void>(run(raw, state));
    static_cast<void>(rule_of(raw, kBegin + state % 64));
  }
  CHECK(true);
}

TEST(a_row_holds_from_where_the_program_has_advanced_to) {
  // push rbp; (1) mov rsp, rbp; (4) ...; (0x44) the end
  const Raw own = {
      0x41, 0x0E, 16, static_cast<std::uint8_t>(0x80 | kFp), 2, 0x43, 0x0D, kFp, 0x02, 0x40,
      0x0C, kSp,  8,  static_cast<std::uint8_t>(0xC0 | kFp)};
  CHECK(rule_of(own, kBegin) == frame(Base::sp, 8));
  CHECK(rule_of(own, kBegin + 1) == frame(Base::sp, 16, -2));
  CHECK(rule_of(own, kBegin + 3) == frame(Base::sp, 16, -2));
  CHECK(rule_of(own, kBegin + 4) == frame(Base::fp, 16, -2));
  CHECK(rule_of(own, kBegin + 0x43) == frame(Base::fp, 16, -2));
  CHECK(rule_of(own, kBegin + 0x44) == frame(Base::sp, 8));
  CHECK(rule_of({0x03, 0x00, 0x01, 0x0E, 24}, kBegin + 0xFF) == frame(Base::sp, 8));
  CHECK(rule_of({0x03, 0x00, 0x01, 0x0E, 24}, kBegin + 0x100) == frame(Base::sp, 24));
  CHECK(rule_of({0x04, 0x00, 0x02, 0, 0, 0x0E, 24}, kBegin + 0x200) == frame(Base::sp, 24));
  CHECK(rule_of({0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 0x0E, 24}, kBegin + 0x1F) == frame(Base::sp, 8));
  CHECK(rule_of({0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 0x0E, 24}, kBegin + 0x20) == frame(Base::sp, 24));
}

TEST(a_state_is_remembered_with_its_cfa) {
  const Raw own = {0x0E, 32, static_cast<std::uint8_t>(0x80 | kFp), 2,    0x0A, 0x41,
                   0x0E, 8,  static_cast<std::uint8_t>(0xC0 | kFp), 0x41, 0x0B};
  CHECK(rule_of(own, kBegin) == frame(Base::sp, 32, -2));
  CHECK(rule_of(own, kBegin + 1) == frame(Base::sp, 8));
  CHECK(rule_of(own, kBegin + 2) == frame(Base::sp, 32, -2));
  CHECK(rule_of({0x0B}) == kUnsupported);              // nothing was remembered
  CHECK(rule_of(Raw(8, 0x0A)) == frame(Base::sp, 8));  // eight, one in the other
  CHECK(rule_of(Raw(9, 0x0A)) == kUnsupported);        // too many
}

TEST(other_ways_to_say_where_registers_are) {
  CHECK(rule_of({0x05, kFp, 3}) == frame(Base::sp, 8, -3));
  CHECK(rule_of({0x11, kFp, 0x7D}) == frame(Base::sp, 8, 3));  // -3 * -8
  CHECK(rule_of({0x2F, kFp, 3}) == frame(Base::sp, 8, 3));
  CHECK(rule_of({0x12, kFp, 0x7E}) == frame(Base::fp, 16));  // -2 * -8
  CHECK(rule_of({0x13, 0x7D}) == frame(Base::sp, 24));
  CHECK(rule_of({0x05, kFp, 3, 0x06, kFp}) == frame(Base::sp, 8));
  CHECK(rule_of({0x05, kFp, 3, 0x08, kFp}) == frame(Base::sp, 8));
  CHECK(rule_of({0x2E, 16, 0x00, 0x05, 3, 2}) == frame(Base::sp, 8));  // of no concern
  // At a place counted from the stack pointer, as the CFA is.
  CHECK(rule_of({0x0E, 48, 0x10, kFp, 2, kBregSp, 16}) == frame(Base::sp, 48, -4));
}

TEST(a_frame_pointer_that_cannot_be_found_is_lost) {
  Rule lost = frame(Base::sp, 8, Rule::kLost);
  lost.fp_from_fp = true;
  CHECK(rule_of({0x07, kFp}) == lost);     // undefined
  CHECK(rule_of({0x09, kFp, 3}) == lost);  // in another register
  CHECK(rule_of({0x14, kFp, 3}) == lost);  // it is a place
  CHECK(rule_of({0x16, kFp, 2, kBregSp, 0}) == lost);
  CHECK(rule_of({0x10, kFp, 3, kBregSp, 0, 0x06}) == lost);  // a place in memory
  CHECK(rule_of({0x10, kFp, 2, kBregFp, 4}) == lost);        // between words
  CHECK(rule_of({0x05, kFp, 0x80, 0x80, 0x04}) == lost);     // too far
  CHECK(rule_of({0x05, kFp, 0}) == lost);                    // where the frame ends
}

TEST(who_has_no_return_address_was_called_by_nobody) {
  CHECK(rule_of({0x07, kRa}) == Rule{Kind::outermost});
  CHECK(rule_of({0x07, kRa}, kBegin, {}) == Rule{Kind::outermost});
  CHECK(rule_of({0x09, kRa, 3}) == kUnsupported);
  CHECK(rule_of({0x10, kRa, 2, kBregSp, 0}) == kUnsupported);
  const Rule kept = rule_of({}, kBegin, {0x0C, kSp, 0});  // it says nothing of it
#if defined(__aarch64__)
  CHECK(kept == Rule{Kind::leaf});
  CHECK(rule_of({0x2D}) == frame(Base::sp, 8));
#else
  CHECK(kept == kUnsupported);
#endif
}

TEST(programs_that_make_no_sense_are_not_supported) {
  const Raw wrong[] = {
      {0x0E},                  // cut off
      {0x0C, kSp},             //
      {0x0F, 20, kBregSp, 0},  // in the expression
      {0x10, kFp, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01},
      {0x04, 1, 2},                    //
      {0x3F, 0},                       // unknown
      {0x0E, 0x80, 0x80, 0x80, 0x04},  // 8 MiB: more than fits
      {0x0C, 3, 8},                    // the CFA is counted from a register that nobody keeps
      {0x0F, 2, 0x73, 0},              //
      {0x0F, 1, 0x31},                 // it is a number
      {static_cast<std::uint8_t>(0x80 | kRa), 0x80, 0x80, 0x04},  // too far away
  };
  for (const Raw& raw : wrong) CHECK(rule_of(raw) == kUnsupported);
  CHECK(rule_of({0x0E, 0xFF, 0xFF, 0xFF, 0x03}) == frame(Base::sp, (1 << 23) - 1));
  CHECK(rule_of({0x0C, 3, 8, 0x0D, kSp}) == frame(Base::sp, 8));  // it is known again
}
