/* backtraces.c: glibc's backtrace(), so many times, for bench/native.py. */
#include <execinfo.h>

int backtraces(int times) {
  void *frames[512];
  int found = 0;
  for (int i = 0; i < times; ++i) found = backtrace(frames, 512);
  return found;
}
