// clock.cpp: see clock.h.
#include "base/clock.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace whence::base {
namespace {

constexpr std::uint64_t kShortestBase = 200'000;  // nanoseconds between the pairs of an estimate

bool chosen = false;
ClockPair first_pair{};

bool counter_is_fit() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;  // invariant TSC
#else
  return true;
#endif
}

}  // namespace

constinit ClockKind detail::clock_kind = ClockKind::monotonic;

ClockPair read_clocks() noexcept {
  ClockPair best{};
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 4; ++attempt) {
    const std::uint64_t before = ticks();
    const std::uint64_t monotonic = nanoseconds(CLOCK_MONOTONIC);
    const std::uint64_t width = ticks() - before;
    if (width < narrowest) {
      narrowest = width;
      best = {before + width / 2, monotonic};
    }
  }
  return best;
}

ClockKind choose_clock(bool kernel_trusts_counter) noexcept {
  if (chosen) return detail::clock_kind;
  chosen = true;
#if defined(__x86_64__)
  if (kernel_trusts_counter && counter_is_fit()) detail::clock_kind = ClockKind::tsc;
#elif defined(__aarch64__)
  if (kernel_trusts_counter && counter_is_fit()) detail::clock_kind = ClockKind::arm_counter;
#else
  static_cast<void>(kernel_trusts_counter);
#endif
  first_pair = read_clocks();
  return detail::clock_kind;
}

std::uint64_t reading_cost() noexcept {
  constexpr std::uint64_t kReadings = 100;
  std::uint64_t best = ~std::uint64_t{0};
  for (int round = 0; round < 5; ++round) {
    const std::uint64_t before = nanoseconds(CLOCK_MONOTONIC);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kReadings; ++i) sum += ticks();
    asm volatile("" : : "r"(sum));
    best = std::min(best, nanoseconds(CLOCK_MONOTONIC) - before);
  }
  return (best + kReadings - 1) / kReadings;
}

std::uint64_t estimate_frequency() noexcept {
  if (detail::clock_kind == ClockKind::monotonic) return 1'000'000'000u;
  ClockPair now = read_clocks();
  while (now.monotonic - first_pair.monotonic < kShortestBase) now = read_clocks();
  const double seconds = static_cast<double>(now.monotonic - first_pair.monotonic) / 1e9;
  return static_cast<std::uint64_t>(static_cast<double>(now.ticks - first_pair.ticks) / seconds);
}

}  // namespace whence::base
