// rule_cache.h: compiled rows by instruction, for the whole process.
//
// Threads: any, also inside a signal handler; takes no lock.
// Allocates: once, by mmap. Fails by: not remembering.
//
// What is known of an instruction is the same in all threads, so one cache serves them all: a
// thread that has just begun finds it warm, and what is read a billion times and written once lies
// in every core's own cache. An entry is three words, written by anybody at any time. The first is
// the others and the address folded together: a reader that catches writers in the middle finds
// that they do not fit. They are multiplied for that: rules may differ by just what addresses
// differ by, and in a sum of them parts of one entry would fit to another. The loader's generation
// is folded into the address, so that what was known before a library came is not found any more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unwind/registers.h"
#include "unwind/rule.h"

namespace whence::unwind {

// Which module and which place in it, as stacks/native_frames.h has it; 0: nobody has asked yet.
using FrameName = std::uint64_t;

struct Known {
  std::uint64_t rule = 0;  // packed; 0: nothing is known
  FrameName name = 0;
};

class RuleCache {
 public:
  // Before anything else, on every thread. False: there is no memory for it.
  [[nodiscard]] bool prepare() noexcept;

  [[nodiscard, gnu::always_inline]] Known find(Address pc,
                                               std::uint64_t generation) const noexcept {
    const std::uint64_t key = key_of(pc, generation);
    const Entry* pair = pair_of(pc);
    for (std::size_t i = 0; i < kWays; ++i) {
      const std::uint64_t folded = pair[i].folded.load(std::memory_order_relaxed);
      const std::uint64_t rule = pair[i].rule.load(std::memory_order_relaxed);
      const std::uint64_t name = pair[i].name.load(std::memory_order_relaxed);
      if ((folded ^ fold(rule, name)) == key) return {rule, name};
    }
    return {};
  }

  // In the place of what was known of the same instruction, or of the one that came first.
  void keep(Address pc, std::uint64_t generation, Known known) noexcept {
    const std::uint64_t key = key_of(pc, generation);
    Entry* pair = pair_of(pc);
    Entry* place = holds(pair[0], key) ? &pair[0] : holds(pair[1], key) ? &pair[1] : nullptr;
    if (place == nullptr) {
      put(pair[1], pair[0]);
      place = &pair[0];
    }
    place->folded.store(key ^ fold(known.rule, known.name), std::memory_order_relaxed);
    place->rule.store(known.rule, std::memory_order_relaxed);
    place->name.store(known.name, std::memory_order_relaxed);
  }

 private:
  struct alignas(32) Entry {
    std::atomic<std::uint64_t> folded, rule, name;
  };
  static constexpr std::size_t kWays = 2;  // side by side, in one line of memory
  static constexpr std::size_t kPairs = 8192;

  [[nodiscard]] static std::uint64_t key_of(Address pc, std::uint64_t generation) noexcept {
    constexpr std::uint64_t kSpread = 0xE7037ED1A0B428DB;  // odd: no two generations are the same
    return pc ^ generation * kSpread;
  }
  [[nodiscard]] static std::uint64_t fold(std::uint64_t rule, std::uint64_t name) noexcept {
    constexpr std::uint64_t kNoRule = 0xD6E8FEB86659FD9F, kNoName = 0xA0761D6478BD642F;
    const auto product = static_cast<unsigned __int128>(rule ^ kNoRule) * (name ^ kNoName);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  [[nodiscard]] Entry* pair_of(Address pc) const noexcept {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;
    constexpr unsigned kBits = 13;
    static_assert(kPairs == std::size_t{1} << kBits);
    return entries_.load(std::memory_order_acquire) + (pc * kSpread >> (64 - kBits)) * kWays;
  }
  [[nodiscard]] static bool holds(const Entry& entry, std::uint64_t key) noexcept {
    const std::uint64_t rule = entry.rule.load(std::memory_order_relaxed);
    const std::uint64_t name = entry.name.load(std::memory_order_relaxed);
    return (entry.folded.load(std::memory_order_relaxed) ^ fold(rule, name)) == key;
  }
  static void put(Entry& to, const Entry& from) noexcept {
    to.folded.store(from.folded.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.rule.store(from.rule.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.name.store(from.name.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

  std::atomic<Entry*> entries_ = nullptr;
};

}  // namespace whence::unwind
