// visited.cpp: a library that calls back. It is built twice, with frames of other sizes.
#include <cstdlib>
#include <cstring>

namespace {

using Call = void (*)(int);

#if VARIANT == 1
constexpr int kWords = 3;
#else
constexpr int kWords = 40;
#endif

thread_local Call called;

[[gnu::noinline]] void deeper(int depth, int times) {
  volatile long words[kWords];
  for (int i = 0; i < kWords; ++i) words[i] = depth;
  if (times > 0) {
    deeper(depth, times - 1);
  } else {
    called(depth);
  }
  words[0] = words[kWords - 1];
}

int compare(const void* a, const void* b) {
  deeper(1, 1);
  return std::memcmp(a, b, sizeof(int));
}

}  // namespace

// qsort() is found when it is called for the first time: each time that the library was loaded.
extern "C" [[gnu::visibility("default")]] void visit(Call call, int depth) {
  called = call;
  int numbers[2] = {2, 1};
  deeper(depth, 3);
  std::qsort(numbers, 2, sizeof(int), compare);
}
