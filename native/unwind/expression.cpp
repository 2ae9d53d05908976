// expression.cpp: see expression.h.
#include "unwind/expression.h"

namespace whence::unwind {
namespace {

constexpr std::size_t kDeepest = 8;

// Operations of DWARF that occur.
enum Operation : std::uint8_t {
  kDeref = 0x06,
  kConst1u = 0x08,
  kConst1s = 0x09,
  kConst2u = 0x0A,
  kConst2s = 0x0B,
  kConst4u = 0x0C,
  kConst4s = 0x0D,
  kConstu = 0x10,
  kConsts = 0x11,
  kAnd = 0x1A,
  kMinus = 0x1C,
  kPlus = 0x22,
  kPlusUconst = 0x23,
  kShl = 0x24,
  kGe = 0x2A,
  kLit0 = 0x30,
  kLit31 = 0x4F,
  kBreg0 = 0x70,
  kBreg31 = 0x8F,
};

class Machine {
 public:
  explicit Machine(Address pc) noexcept : pc_(pc) {}

  [[nodiscard]] std::optional<Place> run(Bytes program) noexcept {
    while (ok_ && !program.at_end()) step(program);
    if (!ok_ || !program.ok() || size_ != 1) return std::nullopt;
    return values_[0];
  }

 private:
  using From = Place::From;

  void step(Bytes& program) noexcept {
    const auto operation = program.fixed<std::uint8_t>();
    if (operation >= kLit0 && operation <= kLit31) return push(operation - kLit0);
    if (operation >= kBreg0 && operation <= kBreg31) {
      return push_register(operation - kBreg0, program.sleb());
    }
    switch (operation) {
      case kConst1u: return push(program.fixed<std::uint8_t>());
      case kConst1s: return push(program.fixed<std::int8_t>());
      case kConst2u: return push(program.fixed<std::uint16_t>());
      case kConst2s: return push(program.fixed<std::int16_t>());
      case kConst4u: return push(program.fixed<std::uint32_t>());
      case kConst4s: return push(program.fixed<std::int32_t>());
      case kConstu: return push(static_cast<std::int64_t>(program.uleb()));
      case kConsts: return push(program.sleb());
      case kPlusUconst: return add(program.uleb());
      case kDeref: return look();
      default: return combine(operation);
    }
  }

  void push(std::int64_t number) noexcept { push({From::nothing, false, number}); }
  void push(Place value) noexcept {
    if (size_ == kDeepest) return fail();
    values_[size_++] = value;
  }
  void push_register(unsigned number, std::int64_t offset) noexcept {
    if (number == kProgramCounter) {
      push(static_cast<std::int64_t>(pc_ + static_cast<std::uint64_t>(offset)));
    } else if (number == kStackPointer) {
      push({From::sp, false, offset});
    } else if (number == kFramePointer) {
      push({From::fp, false, offset});
    } else {
      fail();
    }
  }

  void add(std::uint64_t number) noexcept {
    if (size_ == 0 || values_[size_ - 1].indirect) return fail();
    values_[size_ - 1].offset = sum(values_[size_ - 1].offset, static_cast<std::int64_t>(number));
  }

  void look() noexcept {
    if (size_ == 0 || values_[size_ - 1].indirect || values_[size_ - 1].from == From::nothing) {
      return fail();
    }
    values_[size_ - 1].indirect = true;
  }

  // Of two values, at most one is counted from a register, and only sums may be.
  void combine(std::uint8_t operation) noexcept {
    if (size_ < 2) return fail();
    const Place right = values_[--size_];
    Place& left = values_[size_ - 1];
    if (left.indirect || right.indirect) return fail();
    const bool plain = left.from == From::nothing && right.from == From::nothing;
    if (operation == kPlus && (left.from == From::nothing || right.from == From::nothing)) {
      if (left.from == From::nothing) left.from = right.from;
      left.offset = sum(left.offset, right.offset);
    } else if (operation == kMinus && right.from == From::nothing) {
      left.offset =
          sum(left.offset, static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(right.offset)));
    } else if (operation == kAnd && plain) {
      left.offset &= right.offset;
    } else if (operation == kGe && plain) {
      left.offset = left.offset >= right.offset ? 1 : 0;
    } else if (operation == kShl && plain && right.offset >= 0 && right.offset < 64) {
      left.offset =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(left.offset) << right.offset);
    } else {
      fail();
    }
  }

  // Without overflow, which would be undefined: the result is judged later.
  [[nodiscard]] static std::int64_t sum(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
  void fail() noexcept { ok_ = false; }

  Place values_[kDeepest];
  std::size_t size_ = 0;
  Address pc_;
  bool ok_ = true;
};

}  // namespace

std::optional<Place> evaluate(Bytes program, Address pc) noexcept {
  return Machine(pc).run(program);
}

}  // namespace whence::unwind
