// rule.h: one row of an unwind table, compiled: how to get from a frame to its caller.
//
// Threads: plain data. Allocates: never. Fails by: it cannot.
//
// A row says where the frame ends (its canonical frame address, CFA: what the stack pointer was
// before the call), and where the caller's registers were saved. Of those only the return address
// and the frame pointer matter: ends of frames are given by no other. So a row fits into a word:
//
//     bits  0..3   kind
//           4..5   base: what the CFA is counted from
//           6      the frame pointer's place is counted from the frame pointer, not from the CFA;
//                  with the smallest number there is, the caller's is nowhere
//           7      the CFA is what lies there, not the place itself
//           8..31  from the base to the CFA, in bytes
//          32..47  from the CFA to the return address, in words
//          48..63  from the CFA to the caller's frame pointer, in words; 0: as it is
#pragma once

#include <cstdint>

namespace whence::unwind {

enum class Kind : std::uint8_t {
  none = 0,
  frame = 1,        // an ordinary one
  leaf = 2,         // the return address is in the link register
  signal = 3,       // the kernel has put it there: registers are in what it left on the stack
  outermost = 4,    // nobody called this one
  unlisted = 6,     // code in no library, which may be replaced: found out each time
  unsupported = 5,  // the row says something that does not fit in here, or there is none
};

enum class Base : std::uint8_t { sp = 0, fp = 1 };

struct Rule {
  Kind kind = Kind::none;
  Base base = Base::sp;
  bool fp_from_fp = false;
  bool indirect = false;
  std::int32_t cfa = 0;
  std::int16_t link = 0;
  std::int16_t fp = 0;

  static constexpr std::int16_t kLost = INT16_MIN;
  static constexpr std::int64_t kMostCfa = (1 << 23) - 1;

  [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
    return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(base) << 4 |
           static_cast<std::uint64_t>(fp_from_fp) << 6 | static_cast<std::uint64_t>(indirect) << 7 |
           (static_cast<std::uint64_t>(static_cast<std::uint32_t>(cfa)) & 0xFFFFFF) << 8 |
           static_cast<std::uint64_t>(static_cast<std::uint16_t>(link)) << 32 |
           static_cast<std::uint64_t>(static_cast<std::uint16_t>(fp)) << 48;
  }

  [[nodiscard, gnu::always_inline]] static constexpr Rule unpack(std::uint64_t word) noexcept {
    Rule rule;
    rule.kind = static_cast<Kind>(word & 0xF);
    rule.base = static_cast<Base>(word >> 4 & 0x3);
    rule.fp_from_fp = (word >> 6 & 1) != 0;
    rule.indirect = (word >> 7 & 1) != 0;
    rule.cfa = static_cast<std::int32_t>(static_cast<std::uint32_t>(word)) >> 8;
    rule.link = static_cast<std::int16_t>(word >> 32);
    rule.fp = static_cast<std::int16_t>(word >> 48);
    return rule;
  }

  bool operator==(const Rule&) const = default;
};

}  // namespace whence::unwind
