// fuzz_text.cpp: any bytes become JSON, and any code points become UTF-8 of the size foretold.
#include <cstring>
#include <vector>

#include "base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string json;
  whence::base::append_json_string(json, {reinterpret_cast<const char*>(data), size});
  for (const unsigned width : {1u, 2u, 4u}) {
    // Python strings are aligned and hold code points up to 0x10FFFF.
    std::vector<std::uint32_t> points(size / 4 + 1);
    std::memcpy(points.data(), data, size);
    if (width == 4) {
      for (std::uint32_t& point : points) point %= 0x110000;
    }
    const whence::base::UnicodeView view{points.data(), size / width, width};
    std::vector<std::uint8_t> out(whence::base::utf8_size(view));
    whence::base::write_utf8(view, out.data());
  }
  return 0;
}
