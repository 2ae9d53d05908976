// test_libraries.cpp: what is known of loaded libraries, and that nobody waits for the loader for
// it.
#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "base/libraries_generation.h"
#include "check.h"
#include "unwind/libraries.h"
#include "unwind/walk.h"

using namespace whence::unwind;

namespace {

thread_local int waited = 0;

[[nodiscard]] Address address_of(const char* name) {
  return reinterpret_cast<Address>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

// In the place of the C library's, which takes the loader's lock. Another thread that forks then
// leaves a child in which nobody can load a library.
extern "C" int dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* data) {
  ++waited;
  static const auto real =
      reinterpret_cast<decltype(&dl_iterate_phdr)>(dlsym(RTLD_NEXT, "dl_iterate_phdr"));
  return real(visit, data);
}

TEST(a_library_is_described_without_the_loaders_lock) {
  Description description;
  CHECK(prepare());  // it asks once
  waited = 0;
  CHECK(describe_library(address_of("gnu_get_libc_version"), description));
  CHECK(find_library(address_of("gnu_get_libc_version")).has_value());
  static_cast<void>(whence::base::libraries_generation());
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  CHECK(waited == 0);
#endif
  CHECK(std::strstr(description.path, "libc") != nullptr);
  CHECK(description.build_id_size == 20);
}

TEST(what_is_said_is_what_the_loader_says) {
  struct Told {
    const Description& ours;
    bool found;
  };
  Description description;
  CHECK(describe_library(address_of("gnu_get_libc_version"), description));
  Told told = {description, false};
  const auto look = [](dl_phdr_info* library, std::size_t, void* given) {
    auto& wanted = *static_cast<Told*>(given);
    if (std::strcmp(library->dlpi_name, wanted.ours.path) != 0) return 0;
    wanted.found = library->dlpi_addr == wanted.ours.bias;
    return 1;
  };
  dl_iterate_phdr(look, &told);
  CHECK(told.found);
}

TEST(the_program_has_its_own_path) {
  Description description;
  CHECK(describe_library(reinterpret_cast<Address>(&address_of), description));
  CHECK(std::strstr(description.path, "native_tests") != nullptr ||
        std::strstr(description.path, "qemu") != nullptr);
}

TEST(no_library_is_nowhere) {
  Description description;
  int here = 0;
  CHECK(!describe_library(reinterpret_cast<Address>(&here), description));
  CHECK(!find_library(0).has_value());
}
