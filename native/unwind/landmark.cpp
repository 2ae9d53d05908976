// landmark.cpp: see landmark.h.
#include "unwind/landmark.h"

#include "base/safe_copy.h"
#include "unwind/libraries.h"
#include "unwind/walk.h"

namespace whence::unwind {
namespace {

constexpr Address kWord = sizeof(Address);
constexpr Address kFarthest = 64 * 1024;  // bytes of stack that code made at run time may have

// Is there an instruction that calls, right before this address?
[[nodiscard]] bool follows_call(Address back) noexcept {
#if defined(__x86_64__)
  constexpr std::size_t kBytes = 8;
  std::uint8_t before[kBytes];
  if (!base::safe_copy(back - kBytes, before, kBytes)) return false;
  constexpr std::uint8_t kDirect = 0xE8, kThroughPointer = 0xFF, kWhichIsCall = 2;
  if (before[kBytes - 5] == kDirect) return true;
  for (const std::size_t length : {2u, 3u, 4u, 6u, 7u}) {  // ways to name a pointer
    const std::uint8_t* code = before + kBytes - length;
    if (code[0] == kThroughPointer && (code[1] >> 3 & 7) == kWhichIsCall) return true;
  }
  return false;
#elif defined(__aarch64__)
  std::uint32_t code;
  if (!base::safe_copy(back - sizeof code, &code, sizeof code)) return false;
  constexpr std::uint32_t kDirect = 0x25, kByRegister = 0xD63F0000, kMask = 0xFEFFFC00;
  return code >> 26 == kDirect || (code & kMask) == (kByRegister & kMask);
#else
  return false;
#endif
}

[[nodiscard]] bool is_return_address(Address word) noexcept {
  return find_library(word - 1).has_value() && follows_call(word);
}

// Is this the frame around the landmark?
[[nodiscard]] bool is_around(Address landmark, const Registers& at,
                             std::uint64_t generation) noexcept {
  detail::Steps steps(at, false);
  const Rule rule = Rule::unpack(detail::rule_of(steps, generation).rule);
  if (rule.kind != Kind::frame || rule.indirect) return false;
  detail::Left left;
  End end = End::cut;
  return steps.leave(rule, left, end) && landmark < left.end && is_return_address(steps.at.pc);
}

}  // namespace

bool land_at(Address landmark, const Registers& from, const StackRange& stack,
             std::uint64_t generation, Landing& landing) noexcept {
  if (!stack.has(landmark) || landmark < from.sp || landmark - from.sp > kFarthest) return false;
  Address before = 0;  // what lies further in: a frame pointer, if the code keeps one
  for (Address at = (from.sp + kWord - 1) & ~(kWord - 1); at < landmark; at += kWord) {
    const Address word = without_signature(detail::load(at));
    if (is_return_address(word)) {
      for (const Address fp : {from.fp, before}) {
        landing = {{word, at + kWord, fp, 0}, at};
        if (is_around(landmark, landing.at, generation)) return true;
      }
    }
    before = word;
  }
  return false;
}

}  // namespace whence::unwind
