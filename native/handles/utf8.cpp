// utf8.cpp: see utf8.h.
#include "handles/utf8.h"

#include <cstddef>
#include <cstdint>

namespace whence::handles {
namespace {

struct Lead {
  std::size_t more;     // bytes that follow
  std::uint32_t least;  // a smaller code point has a shorter form
  std::uint32_t bits;
};

bool read_lead(std::uint8_t byte, Lead& lead) noexcept {
  if ((byte & 0xE0) == 0xC0) return lead = {1, 0x80, byte & 0x1Fu}, true;
  if ((byte & 0xF0) == 0xE0) return lead = {2, 0x800, byte & 0x0Fu}, true;
  if ((byte & 0xF8) == 0xF0) return lead = {3, 0x10000, byte & 0x07u}, true;
  return false;
}

}  // namespace

bool is_text(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto byte = static_cast<std::uint8_t>(bytes[at++]);
    if (byte < 0x80) continue;
    Lead lead;
    if (!read_lead(byte, lead) || bytes.size() - at < lead.more) return false;
    std::uint32_t point = lead.bits;
    for (std::size_t i = 0; i < lead.more; ++i) {
      const auto next = static_cast<std::uint8_t>(bytes[at++]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3Fu);
    }
    if (point < lead.least || point > 0x10FFFF) return false;
  }
  return true;
}

}  // namespace whence::handles
