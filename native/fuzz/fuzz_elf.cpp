// fuzz_elf.cpp: any bytes are an ELF file or are refused; whatever its tables say, functions are
// found where they say that they are.
#include <cstdint>
#include <span>
#include <utility>

#include "elf/demangle.h"
#include "elf/image.h"
#include "elf/symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace whence::elf;
  Image image;
  if (image.open(Bytes::of_memory({data, size})) != Problem::none) return 0;
  Symbols symbols;
  if (symbols.read(image) != Problem::none) return 0;
  // A symbol for each 24 bytes at most, in either table.
  if (symbols.size() > 2 * size / 24) __builtin_trap();
  std::uint64_t address = image.load_address();
  for (int i = 0; i < 256; ++i) {
    const auto found = find_demangled(symbols, image, std::span(&address, 1));
    if (found[0].has_value() && (found[0]->name.empty() || found[0]->start > address)) {
      __builtin_trap();
    }
    address += i < 128 ? 16 : address;
  }
  return 0;
}
