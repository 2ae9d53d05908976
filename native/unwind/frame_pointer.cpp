// frame_pointer.cpp: see frame_pointer.h.
#include "unwind/frame_pointer.h"

#include <cstring>

#include "base/safe_copy.h"
#include "unwind/table.h"

namespace whence::unwind {
namespace {

// No function is longer than that.
constexpr Address kLongestFunction = 1 << 20;

// What the call before this return address calls, or 0 if it is none, or one through a pointer.
[[nodiscard]] Address called_before(Address back) noexcept {
#if defined(__x86_64__)
  struct [[gnu::packed]] Call {
    std::uint8_t code;
    std::int32_t distance;
  } call;
  constexpr std::uint8_t kCall = 0xE8;
  if (!base::safe_copy(back - sizeof call, &call, sizeof call) || call.code != kCall) return 0;
  return back + static_cast<Address>(std::int64_t{call.distance});
#elif defined(__aarch64__)
  std::uint32_t call;
  if (!base::safe_copy(back - sizeof call, &call, sizeof call)) return 0;
  constexpr std::uint32_t kCall = 0x25;
  if (call >> 26 != kCall) return 0;
  const auto words = static_cast<std::int32_t>(call << 6) >> 6;
  return back - sizeof call + static_cast<Address>(std::int64_t{words} * 4);
#else
  return 0;
#endif
}

// Does what was called reach as far as `pc`, for all that is known?
[[nodiscard]] bool is_one_function(Address called, Address pc) noexcept {
  const auto library = find_library(pc), other = find_library(called);
  if (!library.has_value() || !other.has_value()) return !library.has_value() && !other.has_value();
  if (library->begin != other->begin) return false;
  const Extent listed = function_before(*library, pc);
  return called >= listed.end || (called == listed.begin && pc < listed.end);
}

}  // namespace

bool has_frame_pointer(const Registers& at) noexcept {
  Address frame[2];  // the caller's frame pointer, and where to return to
  if (at.fp < at.sp || at.fp % sizeof(Address) != 0) return false;
  if (!base::safe_copy(at.fp, frame, sizeof frame)) return false;
  const Address called = called_before(without_signature(frame[1]));
  return called != 0 && called <= at.pc && at.pc - called < kLongestFunction &&
         is_one_function(called, at.pc);
}

}  // namespace whence::unwind
