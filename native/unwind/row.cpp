// row.cpp: see row.h.
#include "unwind/row.h"

#include <cstdint>
#include <cstring>

#include "base/safe_copy.h"
#include "unwind/expression.h"

namespace whence::unwind {
namespace {

// Instructions of DWARF's call frame programs. The first three carry an operand in their low bits.
enum Instruction : std::uint8_t {
  kAdvance = 0x40,
  kOffset = 0x80,
  kRestore = 0xC0,

  kNothing = 0x00,
  kSetLocation = 0x01,
  kAdvance1 = 0x02,
  kAdvance2 = 0x03,
  kAdvance4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0A,
  kRestoreState = 0x0B,
  kDefCfa = 0x0C,
  kDefCfaRegister = 0x0D,
  kDefCfaOffset = 0x0E,
  kDefCfaExpression = 0x0F,
  kExpression = 0x10,
  kOffsetExtendedSigned = 0x11,
  kDefCfaSigned = 0x12,
  kDefCfaOffsetSigned = 0x13,
  kValOffset = 0x14,
  kValOffsetSigned = 0x15,
  kValExpression = 0x16,
  kNegateReturnState = 0x2D,  // aarch64: return addresses are signed from here on, or no longer
  kArgumentsSize = 0x2E,
  kNegativeOffset = 0x2F,
};

// Where a register of the caller is.
struct Saved {
  enum class How : std::uint8_t { same, at_cfa, at_place, undefined, unknown };
  How how = How::same;
  std::int64_t offset = 0;  // from the CFA
  Place place;              // at_place
};

struct Row {
  bool cfa_known = false;
  Place cfa;
  Saved link, fp;
};

constexpr std::size_t kRemembered = 8;

class Program {
 public:
  Program(const Entry& entry, Address pc) noexcept : entry_(entry), pc_(pc) {}

  // False: something made no sense.
  [[nodiscard]] bool run(Row& row) noexcept {
    Address at = entry_.begin;
    if (!execute(entry_.first, at)) return false;
    initial_ = row_;
    at = entry_.begin;
    if (!execute(entry_.own, at)) return false;
    row = row_;
    return true;
  }

 private:
  using How = Saved::How;

  // Up to the instruction before which the location passes pc.
  [[nodiscard]] bool execute(Bytes program, Address& at) noexcept {
    while (!program.at_end()) {
      const auto code = program.fixed<std::uint8_t>();
      const std::uint8_t low = code & 0x3F;
      std::uint64_t distance = 0;
      switch (code & 0xC0) {
        case kAdvance: distance = low; break;
        case kOffset: save(low, scaled(program.uleb())); continue;
        case kRestore: restore(low); continue;
        default: break;
      }
      switch ((code & 0xC0) == 0 ? code : std::uint8_t{kAdvance}) {
        case kSetLocation: at = program.encoded(entry_.pointers, 0); break;
        case kAdvance1: distance = program.fixed<std::uint8_t>(); break;
        case kAdvance2: distance = program.fixed<std::uint16_t>(); break;
        case kAdvance4: distance = program.fixed<std::uint32_t>(); break;
        case kAdvance: break;
        default:
          if (!change(code, program)) return false;
          continue;
      }
      at += distance * entry_.code_step;
      if (at > pc_) return program.ok();
    }
    return program.ok();
  }

  [[nodiscard]] bool change(std::uint8_t code, Bytes& program) noexcept {
    switch (code) {
      case kNothing:
      case kNegateReturnState: return true;
      case kArgumentsSize: static_cast<void>(program.uleb()); return true;
      case kRememberState:
        if (remembered_ == kRemembered) return false;
        states_[remembered_++] = row_;
        return true;
      case kRestoreState:
        if (remembered_ == 0) return false;
        row_ = states_[--remembered_];
        return true;
      case kDefCfa:
      case kDefCfaSigned: {
        const std::uint64_t number = program.uleb();
        set_cfa(number, code == kDefCfa ? static_cast<std::int64_t>(program.uleb())
                                        : scaled(program.sleb()));
        return true;
      }
      case kDefCfaRegister: set_cfa(program.uleb(), row_.cfa.offset); return true;
      case kDefCfaOffset: row_.cfa.offset = static_cast<std::int64_t>(program.uleb()); return true;
      case kDefCfaOffsetSigned: row_.cfa.offset = scaled(program.sleb()); return true;
      case kDefCfaExpression: {
        const auto place = evaluate(program.take(program.uleb()), pc_);
        row_.cfa_known = place.has_value() && place->from != Place::From::nothing;
        if (row_.cfa_known) row_.cfa = *place;
        return true;
      }
      default: return change_register(code, program);
    }
  }

  [[nodiscard]] bool change_register(std::uint8_t code, Bytes& program) noexcept {
    const std::uint64_t number = program.uleb();
    switch (code) {
      case kOffsetExtended: save(number, scaled(program.uleb())); return true;
      case kOffsetExtendedSigned: save(number, scaled(program.sleb())); return true;
      case kNegativeOffset: save(number, scaled(0 - program.uleb())); return true;
      case kRestoreExtended: restore(number); return true;
      case kUndefined: set(number, {How::undefined, 0, {}}); return true;
      case kSameValue: set(number, {How::same, 0, {}}); return true;
      case kExpression: {
        const auto place = evaluate(program.take(program.uleb()), pc_);
        const bool plain = place.has_value() && !place->indirect;
        set(number, plain ? Saved{How::at_place, 0, *place} : Saved{How::unknown, 0, {}});
        return true;
      }
      case kRegister:
      case kValOffset:
      case kValOffsetSigned:
        static_cast<void>(program.uleb());
        set(number, {How::unknown, 0, {}});
        return true;
      case kValExpression:
        program.skip(program.uleb());
        set(number, {How::unknown, 0, {}});
        return true;
      default: return false;
    }
  }

  void set_cfa(std::uint64_t number, std::int64_t offset) noexcept {
    row_.cfa_known = number == kStackPointer || number == kFramePointer;
    row_.cfa = {number == kStackPointer ? Place::From::sp : Place::From::fp, false, offset};
  }
  void save(std::uint64_t number, std::int64_t offset) noexcept {
    set(number, {How::at_cfa, offset, {}});
  }
  void set(std::uint64_t number, const Saved& saved) noexcept {
    if (number == entry_.return_register) row_.link = saved;
    if (number == kFramePointer) row_.fp = saved;
  }
  void restore(std::uint64_t number) noexcept {
    if (number == entry_.return_register) row_.link = initial_.link;
    if (number == kFramePointer) row_.fp = initial_.fp;
  }
  template <class T>
  [[nodiscard]] std::int64_t scaled(T factor) const noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(factor) *
                                     static_cast<std::uint64_t>(entry_.data_step));
  }

  const Entry& entry_;
  const Address pc_;
  Row row_, initial_;
  Row states_[kRemembered];
  std::size_t remembered_ = 0;
};

constexpr Rule kUnsupported{Kind::unsupported};
constexpr std::int64_t kWord = sizeof(Address);

// In words, if it is a whole number of them and fits.
[[nodiscard]] bool in_words(std::int64_t offset, std::int16_t& words) noexcept {
  if (offset % kWord != 0 || offset / kWord < INT16_MIN || offset / kWord > INT16_MAX) return false;
  words = static_cast<std::int16_t>(offset / kWord);
  return true;
}

// A frame pointer that nobody can find is lost from here on: rows that need it lead nowhere.
void take_frame_pointer(const Row& row, Rule& rule) noexcept {
  using How = Saved::How;
  const Saved& saved = row.fp;
  if (saved.how == How::same) return;
  if (saved.how == How::at_cfa && saved.offset != 0 && in_words(saved.offset, rule.fp)) return;
  if (saved.how == How::at_place && saved.place.from == Place::From::fp) {
    rule.fp_from_fp = true;
    if (in_words(saved.place.offset, rule.fp) && rule.fp != Rule::kLost) return;
  }
  if (saved.how == How::at_place && saved.place.from == Place::From::sp &&
      row.cfa.from == Place::From::sp && !row.cfa.indirect) {
    // The CFA's offset is small by now; if the difference wraps, it is far off.
    const auto from_cfa = static_cast<std::int64_t>(static_cast<std::uint64_t>(saved.place.offset) -
                                                    static_cast<std::uint64_t>(row.cfa.offset));
    if (from_cfa != 0 && in_words(from_cfa, rule.fp)) return;
  }
  rule.fp_from_fp = true;
  rule.fp = Rule::kLost;
}

// Is this what a signal handler returns to? Its instructions never change: unwinders know it by
// them. glibc's table for it begins one instruction early, so that a return address less one is
// in it. Other code may be marked as the frame of a signal, too, but there the kernel has left
// nothing: the row says what is, as always.
[[nodiscard]] bool is_signal_return(Address begin) noexcept {
#if defined(__x86_64__)
  constexpr std::uint8_t kReturn[] = {0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0,  // mov $15, %rax
                                      0x0F, 0x05};                      // syscall
  constexpr Address kBefore = 1;
#elif defined(__aarch64__)
  constexpr std::uint8_t kReturn[] = {0x68, 0x11, 0x80, 0xD2,   // mov x8, 139
                                      0x01, 0x00, 0x00, 0xD4};  // svc 0
  constexpr Address kBefore = 4;
#endif
  std::uint8_t code[sizeof kReturn];
  const auto is_at = [&](Address at) {
    return base::safe_copy(at, code, sizeof code) && std::memcmp(code, kReturn, sizeof code) == 0;
  };
  return is_at(begin) || is_at(begin + kBefore);
}

}  // namespace

Rule rule_at(const Entry& entry, Address pc) noexcept {
  if (entry.is_signal && is_signal_return(entry.begin)) return {Kind::signal};
  Row row;
  if (entry.return_register != kReturn || !Program(entry, pc).run(row)) return kUnsupported;
  using How = Saved::How;
  if (row.link.how == How::undefined) return {Kind::outermost};
  if (!row.cfa_known || row.cfa.offset < -Rule::kMostCfa || row.cfa.offset > Rule::kMostCfa) {
    return kUnsupported;
  }
  Rule rule{Kind::frame};
  rule.base = row.cfa.from == Place::From::sp ? Base::sp : Base::fp;
  rule.indirect = row.cfa.indirect;
  rule.cfa = static_cast<std::int32_t>(row.cfa.offset);
  take_frame_pointer(row, rule);
  if (row.link.how == How::same && kReturn != kProgramCounter) {
    rule.kind = Kind::leaf;
  } else if (row.link.how != How::at_cfa || !in_words(row.link.offset, rule.link)) {
    return kUnsupported;
  }
  return rule;
}

}  // namespace whence::unwind
