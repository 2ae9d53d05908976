// unsettled.cpp: see unsettled.h.
#include "stacks/unsettled.h"

#include <Python.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/libraries_generation.h"
#include "unwind/libraries.h"
#include "unwind/registers.h"
#include "unwind/signal_frames.h"
#include "unwind/walk.h"

namespace whence::stacks {
namespace {

using unwind::Address;

// What is known of callers: the address that they are returned to, and a bit for the answer.
constexpr std::size_t kCallers = 512;
std::array<std::atomic<Address>, kCallers> callers{};
std::atomic<std::uint64_t> generation = 0;  // of the libraries that they are in

// PyMem_Free() leaves it to us to return to its caller, where it was compiled well. If not, who has
// called that one is not known.
[[nodiscard]] bool is_python_api(Address pc) noexcept {
  constexpr Address kSize = 64;
  return pc - reinterpret_cast<Address>(&PyMem_Free) < kSize;
}

}  // namespace

bool prepare_for_unsettled() noexcept {
  return unwind::prepare();
}

bool is_interrupted() noexcept {
  return unwind::may_be_in_signal_handler();
}

bool is_between_stacks(const void* frame) noexcept {
  const std::uint64_t now = base::libraries_generation();
  if (generation.load(std::memory_order_relaxed) != now) [[unlikely]] {
    generation.store(now, std::memory_order_relaxed);
    for (auto& caller : callers) caller.store(0, std::memory_order_relaxed);
  }
  // Both kinds of machine keep it there: a frame pointer, then where to return to.
  const Address pc = unwind::without_signature(static_cast<const Address*>(frame)[1]);
  auto& place = callers[(pc ^ pc >> 9) % kCallers];
  const Address known = place.load(std::memory_order_relaxed);
  if (known >> 1 == pc) return (known & 1) != 0;
  const bool is = is_python_api(pc) || unwind::is_in_library(pc, "_greenlet.");
  place.store(pc << 1 | Address{is}, std::memory_order_relaxed);
  return is;
}

}  // namespace whence::stacks
