// fuzz_mangled.cpp: any name can be demangled, and is no longer then than was said before.
#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "elf/demangle.h"
#include "elf/mangled_size.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace whence::elf;
  std::string name("_Z");
  name.append(reinterpret_cast<const char*>(data), size);
  if (demangle(name).size() > kLongestName + 3) __builtin_trap();
  const std::uint64_t most = most_demangled(name);
  if (most > kLongestDemangled) return 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr);
  if (text != nullptr && std::strlen(text) > most) __builtin_trap();
  std::free(text);
  return 0;
}
