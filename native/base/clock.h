// clock.h: the time, as cheaply as this machine gives it.
//
// Threads: any. choose_clock() once, before the first reading that matters.
// Allocates: never.
// Fails by: falling back to the monotonic clock, which is always there.
//
// A reading is a number of ticks: of the processor's own counter where that runs at one rate on all
// cores, else nanoseconds of the monotonic clock. Readings are kept as they are; pairs of (ticks,
// nanoseconds) taken now and then are what turns them into time later.
#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace whence::base {

enum class ClockKind : std::uint32_t { monotonic = 1, tsc = 2, arm_counter = 3 };

namespace detail {
extern ClockKind clock_kind;
}

[[nodiscard]] inline std::uint64_t nanoseconds(clockid_t clock) noexcept {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// A reading takes longer than sixteen steps of the counter, so nothing is lost; and most of what is
// kept are differences of readings, which fit into a byte or two this way.
inline constexpr unsigned kTscShift = 4;

#if defined(__x86_64__)
struct Counter {
  static constexpr ClockKind kKind = ClockKind::tsc;
  [[nodiscard, gnu::always_inline]] static std::uint64_t ticks() noexcept {
    return __rdtsc() >> kTscShift;
  }
};
#elif defined(__aarch64__)
struct Counter {
  static constexpr ClockKind kKind = ClockKind::arm_counter;
  [[nodiscard, gnu::always_inline]] static std::uint64_t ticks() noexcept {
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
  }
};
#else
struct Counter {
  static constexpr ClockKind kKind = ClockKind::monotonic;
  [[nodiscard]] static std::uint64_t ticks() noexcept { return nanoseconds(CLOCK_MONOTONIC); }
};
#endif

// Is the processor's counter the clock? Then it may be read without asking for more.
[[nodiscard, gnu::always_inline]] inline bool uses_counter() noexcept {
  return detail::clock_kind == Counter::kKind;
}

[[nodiscard]] inline std::uint64_t ticks() noexcept {
  return uses_counter() ? Counter::ticks() : nanoseconds(CLOCK_MONOTONIC);
}

// What was done before this was done before the next reading, too. A processor reads its counter
// ahead of time: while it still waits for a lock, say.
[[gnu::always_inline]] inline void order_clock() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

struct AnyClock {
  [[nodiscard]] static std::uint64_t ticks() noexcept { return base::ticks(); }
};

struct ClockPair {
  std::uint64_t ticks;
  std::uint64_t monotonic;  // nanoseconds
};

// The tightest of a few attempts: an interrupt between the two readings would shift the pair.
[[nodiscard]] ClockPair read_clocks() noexcept;

// Uses the processor's counter if it is fit for it and the kernel trusts it too. Once chosen, the
// kind stays for the life of the process, because readings of two kinds do not mix.
ClockKind choose_clock(bool kernel_trusts_counter) noexcept;

// Nanoseconds that a reading takes, rounded up: the fastest of a few rounds.
[[nodiscard]] std::uint64_t reading_cost() noexcept;

// Ticks in a second, from a pair taken at choose_clock() and one taken now. At least 200 us lie
// between the two: a few hundred parts in a million, good enough until a recording has pairs of its
// own.
[[nodiscard]] std::uint64_t estimate_frequency() noexcept;

// That many nanoseconds by this estimate, rounded up.
[[nodiscard]] inline std::uint64_t ticks_in(std::uint64_t nanoseconds) noexcept {
  if (nanoseconds == 0) return 0;
  const double seconds = static_cast<double>(nanoseconds) / 1e9;
  return 1 + static_cast<std::uint64_t>(seconds * static_cast<double>(estimate_frequency()));
}

}  // namespace whence::base
