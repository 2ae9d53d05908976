// fuzz_handles.cpp: any bytes are a table of handles or are refused; what is read is written again
// as something that reads the same.
#include <cstring>
#include <string>
#include <vector>

#include "handles/decode.h"
#include "handles/encode.h"

namespace {

using namespace whence::handles;

std::string encoded(const Loaded& loaded) {
  std::vector<Part> parts;
  for (const LoadedPart& part : loaded.parts) parts.push_back({part.name_space, &part.columns});
  return encode(parts);
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// A file of one part with this payload, whose checksums are right.
std::string with_payload(const std::uint8_t* data, std::size_t size) {
  std::string out(sizeof(FileHeader) + sizeof(PartHeader), '\0');
  out.append(reinterpret_cast<const char*>(data), size);
  PartHeader part{.size = size, .payload_checksum = whence::base::checksum(data, size)};
  part.checksum = checksum_of(part);
  FileHeader file{.parts = 1, .size = out.size()};
  file.checksum = checksum_of(file);
  std::memcpy(out.data(), &file, sizeof file);
  std::memcpy(out.data() + sizeof file, &part, sizeof part);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)decode({data, size});
  const Loaded loaded = decode(bytes_of(with_payload(data, size)));
  if (loaded.problem != Problem::none) return 0;
  const std::string once = encoded(loaded);
  const Loaded again = decode(bytes_of(once));
  if (again.problem != Problem::none || encoded(again) != once) __builtin_trap();
  return 0;
}
