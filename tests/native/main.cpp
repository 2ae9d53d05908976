// main.cpp: the tests have run before main; this counts them.
#include "check.h"

int main() {
  std::printf("%d native tests, %d failures\n", check::tests, check::failures);
  return check::failures == 0 && check::tests > 0 ? 0 : 1;
}
