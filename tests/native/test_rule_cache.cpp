// test_rule_cache.cpp: what threads write at once is found as one of them has written it, or not.
//
// Values are chosen so that parts of them fit together as badly as they can: numbers that differ by
// what addresses differ by, and names that are rules turned round.
#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>
#include <vector>

#include "check.h"
#include "unwind/rule_cache.h"

using namespace whence::unwind;

namespace {

struct Written {
  Address pc;
  Known known;
};

// Addresses that share a place with the first, found by what they drive out.
[[nodiscard]] std::vector<Address> rivals(RuleCache& cache, std::size_t count) {
  std::vector<Address> found = {0x7F0012345678};
  for (Address pc = found[0] + 1; found.size() < count; ++pc) {
    cache.keep(found[0], 0, {1, 1});
    for (std::uint64_t generation = 1; generation <= 2; ++generation) {
      cache.keep(pc, generation, {1, 1});
    }
    if (cache.find(found[0], 0).rule == 0) found.push_back(pc);
  }
  return found;
}

// What an entry is in memory, to tear it as threads may.
struct alignas(32) Words {
  std::uint64_t folded, rule, name;
};
constexpr std::size_t kEntries = 2 * 8192;

[[nodiscard]] Words* words_of(RuleCache& cache) {
  static_assert(sizeof cache == sizeof(Words*));
  return *reinterpret_cast<Words**>(&cache);
}
void clear(RuleCache& cache) {
  std::fill_n(words_of(cache), kEntries, Words{});
}
[[nodiscard]] Words* words_in_use(RuleCache& cache) {
  return std::find_if(words_of(cache), words_of(cache) + kEntries,
                      [](const Words& words) { return words.rule != 0; });
}

[[nodiscard]] std::vector<Written> unlucky(const std::vector<Address>& pcs) {
  const auto turned = [](std::uint64_t rule) { return std::rotr(rule, 13); };
  std::vector<Written> written;
  for (const Address pc : pcs) {
    const std::uint64_t differs = pc ^ pcs[0];
    written.push_back({pc, {(std::uint64_t{1} << 40) ^ differs, differs}});
    written.push_back({pc, {std::uint64_t{1} << 40, turned(differs)}});
  }
  for (const Known known : {Known{1, 0}, {2, turned(4)}, {5, 0}, {6, 0}, {3, turned(4)}}) {
    written.push_back({pcs[0], known});
  }
  return written;
}

[[nodiscard]] bool was_written(const std::vector<Written>& written, Address pc,
                               const Known& found) {
  return found.rule == 0 || std::any_of(written.begin(), written.end(), [&](const Written& one) {
           return one.pc == pc && one.known.rule == found.rule && one.known.name == found.name;
         });
}

// Writers and readers of the same few entries; how often something was found that nobody wrote.
[[nodiscard]] int mixed_up(RuleCache& cache, const std::vector<Written>& written, int rounds) {
  std::atomic<int> wrong = 0;
  std::atomic<bool> ends = false;
  std::vector<std::thread> writers, readers;
  for (std::size_t first = 0; first < 3; ++first) {
    writers.emplace_back([&, first] {
      for (int i = 0; i < rounds; ++i) {
        const Written& one =
            written[(first + static_cast<std::size_t>(i) * (first + 1)) % written.size()];
        cache.keep(one.pc, 5, one.known);
      }
    });
  }
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!ends.load()) {
        for (const Written& one : written) {
          if (!was_written(written, one.pc, cache.find(one.pc, 5))) ++wrong;
        }
      }
    });
  }
  for (auto& writer : writers) writer.join();
  ends = true;
  for (auto& reader : readers) reader.join();
  return wrong;
}

#if defined(__SANITIZE_THREAD__) || defined(__aarch64__)  // slow: or run by an emulator
constexpr int kRounds = 20000;
#else
constexpr int kRounds = 500000;
#endif

}  // namespace

TEST(what_was_kept_is_found_until_the_generation_changes) {
  RuleCache cache;
  CHECK(cache.prepare() && cache.prepare());
  CHECK(cache.find(0x1000, 0).rule == 0);
  cache.keep(0x1000, 3, {7, 0});
  CHECK(cache.find(0x1000, 3).rule == 7 && cache.find(0x1000, 3).name == 0);
  cache.keep(0x1000, 3, {7, 99});
  CHECK(cache.find(0x1000, 3).rule == 7 && cache.find(0x1000, 3).name == 99);
  CHECK(cache.find(0x1000, 4).rule == 0);
  CHECK(cache.find(0x1001, 3).rule == 0);
}

TEST(the_two_latest_of_one_place_are_known) {
  RuleCache cache;
  CHECK(cache.prepare());
  const auto pcs = rivals(cache, 4);
  for (std::size_t i = 0; i < 4; ++i) {
    cache.keep(pcs[i], 9, {i + 1, i});
    CHECK(cache.find(pcs[i], 9).rule == i + 1);
    if (i > 0) CHECK(cache.find(pcs[i - 1], 9).rule == i);
    if (i > 1) CHECK(cache.find(pcs[i - 2], 9).rule == 0);
  }
}

TEST(parts_of_different_entries_do_not_fit) {
  RuleCache cache;
  CHECK(cache.prepare());
  const auto written = unlucky(rivals(cache, 4));
  std::vector<Words> parts;
  for (const Written& one : written) {
    clear(cache);
    cache.keep(one.pc, 5, one.known);
    parts.push_back(*words_in_use(cache));
  }
  Words& place = *words_in_use(cache);
  for (const Words& first : parts) {
    for (const Words& second : parts) {
      for (const Words& third : parts) {
        place = {first.folded, second.rule, third.name};
        for (const Written& one : written)
          CHECK(was_written(written, one.pc, cache.find(one.pc, 5)));
      }
    }
  }
}

TEST(entries_that_threads_write_at_once_are_not_mixed_up) {
  RuleCache cache;
  CHECK(cache.prepare());
  const auto written = unlucky(rivals(cache, 4));
  clear(cache);
  CHECK(mixed_up(cache, written, kRounds) == 0);
}
