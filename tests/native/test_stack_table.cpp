// test_stack_table.cpp: equal stacks are equal ids, from any number of threads.
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "stacks/stack_table.h"

using namespace whence::stacks;

static StackId path(StackTable& table, std::uint32_t number, int depth) {
  StackId id = kEmpty;
  for (int i = 0; i < depth; ++i) {
    id = table.intern(id, 1 + ((number >> i) & 1), static_cast<std::int32_t>(2 * i));
  }
  return id;
}

TEST(equal_stacks_are_equal_ids) {
  auto table = std::make_unique<StackTable>();
  std::vector<StackId> ids;
  for (std::uint32_t n = 0; n < 20'000; ++n) ids.push_back(path(*table, n, 15));
  const auto before = table->statistics();
  for (std::uint32_t n = 0; n < 20'000; ++n) {
    CHECK(path(*table, n, 15) == ids[n]);
    CHECK(table->depth(ids[n]) == 15);
    CHECK(table->node(ids[n]).offset == 28);
  }
  CHECK(table->statistics().nodes == before.nodes);
  CHECK(table->statistics().bytes == before.bytes);
}

TEST(threads_agree_on_every_id) {
  auto table = std::make_unique<StackTable>();
  constexpr std::uint32_t kPaths = 30'000;
  std::vector<std::vector<StackId>> seen(8, std::vector<StackId>(kPaths));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kPaths; ++i) {
        const std::uint32_t n = (i * 7919 + static_cast<std::uint32_t>(t) * 131) % kPaths;
        seen[t][n] = path(*table, n, 16);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 1; t < seen.size(); ++t) CHECK(seen[t] == seen[0]);
}

TEST(a_full_table_gives_truncated_ids_and_counts_them) {
  auto table = std::make_unique<StackTable>();
  table->set_cap(10);
  const StackId known = path(*table, 0, 10);
  CHECK(!is_truncated(known));
  const StackId cut = table->intern(known, 9, 9);
  CHECK(is_truncated(cut) && whole_part(cut) == known);
  CHECK(table->depth(cut) == 11);
  CHECK(table->intern(cut, 3, 3) == cut);
  CHECK(table->statistics().truncated == 1);
  CHECK(table->statistics().nodes == 10);
  CHECK(table->contains(cut) && !table->contains(11));
  CHECK(path(*table, 0, 10) == known);
}
