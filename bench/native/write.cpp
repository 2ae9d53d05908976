// write.cpp: what one record costs: the clock, the encoding, the commit. Run by bench/record.py.
//
//      write clock|mark|counter|span N FILE     does it N times; prints nanoseconds each
#include "store/write.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/byte_pool.h"
#include "base/clock.h"
#include "format/records/counter.h"
#include "format/records/mark.h"
#include "probes/counter.h"
#include "probes/mark.h"
#include "probes/span.h"

namespace {

using namespace whence;

template <class Function>
void repeat(long times, Function&& function) {
  const std::uint64_t start = base::nanoseconds(CLOCK_MONOTONIC);
  for (long i = 0; i < times; ++i) function(i);
  const std::uint64_t end = base::nanoseconds(CLOCK_MONOTONIC);
  std::printf("%.3f\n", static_cast<double>(end - start) / static_cast<double>(times));
}

}  // namespace

int main(int, char** argv) {
  const char* what = argv[1];
  const long times = std::atol(argv[2]);
  store::Options options;
  options.path = argv[3];
  options.overwrite = true;
  options.max_size = 8 << 20;
  if (store::store().start(options) != 0) return 1;
  const auto ref = base::names().intern(std::span(reinterpret_cast<const std::uint8_t*>("x"), 1));
  const std::uint32_t recording = store::store().generation();
  const std::uint64_t name = store::store().string(recording, ref);
  probes::mark(recording, name);
  if (std::strcmp(what, "clock") == 0) {
    std::uint64_t sum = 0;
    repeat(times, [&](long) {
      sum += base::ticks();
      asm volatile("" : "+r"(sum));
    });
  } else if (std::strcmp(what, "mark") == 0) {
    repeat(times, [&](long) { probes::mark(recording, name); });
  } else if (std::strcmp(what, "counter") == 0) {
    repeat(times, [&](long i) { probes::counter(recording, name, std::int64_t{i & 63}); });
  } else {
    repeat(times, [&](long) {
      probes::Span span;
      span.generation = recording;
      span.name = name;
      probes::begin(span);
      probes::end(span, false);
    });
  }
  return store::store().stop() >= 0 ? 0 : 1;
}
