// check.h: tests of the layers that know no Python, in as few lines as will do.
#pragma once

#include <cstdio>

namespace check {

inline int failures = 0;
inline int tests = 0;

struct Test {
  Test(const char* name, void (*body)()) {
    const int before = failures;
    body();
    ++tests;
    if (failures != before) std::printf("FAILED %s\n", name);
  }
};

}  // namespace check

#define TEST(name)                                  \
  static void name();                               \
  static const check::Test run_##name(#name, name); \
  static void name()

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ++check::failures;                                                    \
      std::printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                       \
  } while (false)
