// frames.cpp: frames that compilers make and that are not simple. See storm.h.
#include <alloca.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storm/storm.h"

namespace storm {
namespace {

// Neither the compiler nor the processor knows what is in there.
void use(void* place) noexcept {
  asm volatile("" : : "r"(place) : "memory");
}

[[gnu::noinline]] void plain(int depth) {
  onward(depth - 1);
  use(nullptr);
}

[[gnu::noinline]] void with_alloca(int depth) {
  void* place = alloca(16 + random(3000));
  std::memset(place, 7, 16);
  use(place);
  onward(depth - 1);
  use(place);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvla"
[[gnu::noinline]] void with_array(int depth) {
  const std::size_t size = 1 + random(500);
  std::uint32_t array[size];
  array[0] = array[size - 1] = 7;
  use(array);
  onward(depth - 1);
  use(array);
}
#pragma GCC diagnostic pop

// More arguments than registers, so it must find those of its caller from an aligned stack.
[[gnu::noinline]] long aligned(int depth, long b, long c, long d, long e, long f, long g, long h) {
  alignas(64) char place[192];
  use(place);
  onward(depth - 1);
  use(place);
  return b + c + d + e + f + g + h;
}
[[gnu::noinline]] void aligned_with_alloca(int depth) {
  alignas(128) char place[128];
  void* more = alloca(random(300) + 1);
  use(place);
  use(more);
  onward(depth - 1);
  use(place);
}
[[gnu::noinline]] void with_aligned(int depth) {
  static volatile long sum;
  sum = sum + aligned(depth, 1, 2, 3, 4, 5, 6, 7);
}

struct Shape {
  virtual ~Shape() = default;
  virtual void go(int depth) = 0;
};
struct Round final : Shape {
  void go(int depth) override {
    onward(depth - 1);
    use(this);
  }
};
struct Square final : Shape {
  std::string name = "a name that is longer than fits into the string itself";
  void go(int depth) override {
    std::string copy = name;
    onward(depth - 1);
    use(copy.data());
  }
};
[[gnu::noinline]] void with_virtual(int depth) {
  std::unique_ptr<Shape> shape;
  if (random(2) == 0) {
    shape = std::make_unique<Round>();
  } else {
    shape = std::make_unique<Square>();
  }
  shape->go(depth);
}

[[gnu::noinline]] void with_function(int depth) {
  std::function<void(int)> again = [&](int times) {
    if (times != 0) return again(times - 1), use(&again);
    onward(depth - 1);
  };
  again(static_cast<int>(random(4)));
}

[[gnu::noinline]] void with_sort(int depth) {
  std::vector<int> numbers(3 + random(30));
  for (int& number : numbers) number = static_cast<int>(random(100));
  int left = 1;  // one of the comparisons goes on
  std::sort(numbers.begin(), numbers.end(), [&](int a, int b) {
    if (left != 0 && random(8) == 0) --left, onward(depth - 1);
    return a < b;
  });
}

// Through a stub of the linker, and code that is not ours.
thread_local int depth_of_comparison;
int compare(const void* a, const void* b) {
  const int depth = depth_of_comparison;
  if (depth > 0 && random(8) == 0) onward(depth - 1);
  depth_of_comparison = depth;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
[[gnu::noinline]] void with_qsort(int depth) {
  int numbers[12];
  for (int& number : numbers) number = static_cast<int>(random(100));
  depth_of_comparison = depth;
  qsort(numbers, std::size(numbers), sizeof(int), compare);
  use(numbers);
}

struct Watcher {
  ~Watcher() { capture(); }
};
struct Thrown {
  int depth;
};
[[gnu::noinline]] void throws(int depth) {
  const Watcher watcher;
  onward(depth - 1);
  throw Thrown{depth};
}
[[gnu::noinline]] void passes_on(int depth) {
  const Watcher watcher;
  char* place = static_cast<char*>(alloca(16 + random(100)));
  use(place);
  throws(depth);
}
[[gnu::noinline]] void with_exception(int depth) {
  counts.exceptions.fetch_add(1, std::memory_order_relaxed);
  const Passing throwing(here.throwing);
  try {
    passes_on(depth);
  } catch (const Thrown& thrown) {
    try {
      onward(thrown.depth - 2);
      throw;
    } catch (...) {
      capture();
    }
  }
}

}  // namespace

void through_compiled(int depth) {
  switch (random(12)) {
    case 0: return with_alloca(depth);
    case 1: return with_array(depth);
    case 2: return with_aligned(depth);
    case 3: return aligned_with_alloca(depth);
    case 4: return with_virtual(depth);
    case 5: return with_function(depth);
    case 6: return with_sort(depth);
    case 7: return with_qsort(depth);
    case 8: return with_exception(depth);
    default: return plain(depth);
  }
}

}  // namespace storm
