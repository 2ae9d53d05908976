// rules.cpp: what the unwinder makes of a library's table, for a test to compare.
//
//     rules LIBRARY < offsets > rules
//
// Offsets from where the library's first address would be, in the file's counting, one on a line;
// for each, the packed rule.
#include <dlfcn.h>
#include <link.h>

#include <cinttypes>
#include <cstdio>

#include "unwind/table.h"

using namespace whence::unwind;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  void* loaded = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  link_map* map = nullptr;
  if (loaded == nullptr || dlinfo(loaded, RTLD_DI_LINKMAP, &map) != 0) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  std::uint64_t offset;
  while (std::scanf("%" SCNu64, &offset) == 1) {
    const Address pc = map->l_addr + offset;
    const auto library = find_library(pc);
    const Rule rule = library ? find_rule(*library, pc) : Rule{};
    std::printf("%" PRIu64 "\n", rule.packed());
  }
  return 0;
}
