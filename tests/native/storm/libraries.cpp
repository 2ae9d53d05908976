// libraries.cpp: two libraries come and go, and take each other's place. See storm.h.
#include <dlfcn.h>
#include <unistd.h>

#include "storm/storm.h"

namespace storm {

// Some loaders never do that.
bool places_come_again(const char* first, const char* second) {
  const void* found[2] = {};
  for (const void*& each : found) {
    void* library = dlopen(&each == found ? first : second, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) fail(dlerror());
    each = dlsym(library, "visit");
    dlclose(library);
  }
  return found[0] == found[1];
}

void change_libraries(const char* first, const char* second, const std::atomic<bool>& ends) {
  // After each, everything must be learned anew. The next comes as soon as one has gone, before
  // others take its place.
  constexpr useconds_t kPause = 1000;
  // Where a library comes to lie is up to the loader: a short storm waits for its luck.
  constexpr std::uint64_t kPatience = 5000;
  const auto is_lucky = [] {
    return counts.same_place.load() > 0 || counts.loads.load() > kPatience;
  };
  const void* last = nullptr;
  for (bool other = false; !ends.load() || !is_lucky(); other = !other) {
    void* library = dlopen(other ? second : first, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) fail(dlerror());
    using Visit = void (*)(Call, int);
    const auto visit = reinterpret_cast<Visit>(dlsym(library, "visit"));
    if (visit == nullptr) fail(dlerror());
    counts.loads.fetch_add(1, std::memory_order_relaxed);
    if (reinterpret_cast<const void*>(visit) == last) {
      counts.same_place.fetch_add(1, std::memory_order_relaxed);
    }
    last = reinterpret_cast<const void*>(visit);
    for (int i = 0; i < 3; ++i) visit(onward, 3);
    usleep(kPause);
    dlclose(library);
  }
}

}  // namespace storm
