// file.cpp: see file.h.
#include "format/file.h"

#include "base/checksum.h"

namespace whence::format {
namespace {

constexpr std::array<const char*, kReasons> kReasonNames = {
    "none",       "ring",          "disk",           "quota",        "io",   "memory",
    "file_limit", "limit",         "too_large",      "finalizing",   "fork", "internal",
    "damaged",    "hook_replaced", "unknown_layout", "tool_id_taken"};

std::uint32_t opening_of(const FileHeader& header) noexcept {
  return base::checksum(&header, offsetof(FileHeader, opening_checksum));
}

std::uint32_t closing_of(const FileHeader& header) noexcept {
  return base::checksum(&header.state,
                        offsetof(FileHeader, closing_checksum) - offsetof(FileHeader, state));
}

}  // namespace

const char* reason_name(Reason reason) noexcept {
  const auto index = static_cast<std::size_t>(reason);
  return index < kReasons ? kReasonNames[index] : "unknown";
}

void seal_opening(FileHeader& header) noexcept {
  header.opening_checksum = opening_of(header);
}

void seal_closing(FileHeader& header) noexcept {
  header.closing_checksum = closing_of(header);
}

HeaderCheck check_header(const FileHeader& header) noexcept {
  if (header.magic != kMagic) return HeaderCheck::not_a_recording;
  if (header.major > kMajor) return HeaderCheck::too_new;
  const bool good = header.opening_checksum == opening_of(header) && header.major == kMajor &&
                    header.header_size >= sizeof(FileHeader) &&
                    header.header_size <= kLargestChunk && header.chunk_size >= kSmallestChunk &&
                    header.chunk_size <= kLargestChunk && header.ticks_per_second != 0 &&
                    (header.layout == Layout::fixed || header.layout == Layout::compact);
  return good ? HeaderCheck::good : HeaderCheck::damaged;
}

bool closing_is_good(const FileHeader& header) noexcept {
  if (header.closing_checksum == 0) return header.state != FileState::closed;
  return header.closing_checksum == closing_of(header);
}

}  // namespace whence::format
