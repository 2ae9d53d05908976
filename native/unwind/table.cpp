// table.cpp: see table.h.
//
//     .eh_frame_hdr   version, three encodings | .eh_frame | count | (function, entry) ...
//     .eh_frame       CIE: what functions have in common | FDE: of one function, and its CIE | ...
#include "unwind/table.h"

#include "base/safe_copy.h"
#include "unwind/row.h"

namespace whence::unwind {
namespace {

constexpr Rule kUnsupported{Kind::unsupported};
constexpr std::uint32_t kLongest = 1 << 16;  // bytes of an entry

// An entry without the length that it begins with; nothing, if that makes no sense.
[[nodiscard]] Bytes entry_at(Address at) noexcept {
  Bytes begin(at, sizeof(std::uint32_t));
  const auto length = begin.fixed<std::uint32_t>();
  return length <= kLongest ? Bytes(begin.here(), length) : Bytes();
}

struct Row {
  std::int32_t function, entry;  // from the beginning of the header
};

// The last function that does not begin after `pc`. Pages of the table are read a row at a time.
[[nodiscard]] Address find_entry(Address header, Address pc) noexcept {
  constexpr std::size_t kMostHeader = 4 + 8 + 8;
  constexpr std::uint8_t kRowEncoding = pointer::kFromData | pointer::kSdata4;
  Bytes bytes(header, kMostHeader);
  const auto version = bytes.fixed<std::uint8_t>();
  const auto frames = bytes.fixed<std::uint8_t>(), counts = bytes.fixed<std::uint8_t>(),
             rows = bytes.fixed<std::uint8_t>();
  if (version != 1 || rows != kRowEncoding || counts == pointer::kOmitted) return 0;
  static_cast<void>(bytes.encoded(frames, header));
  const std::uint64_t count = bytes.encoded(counts, header);
  if (!bytes.ok() || count == 0 || count > UINT32_MAX) return 0;
  const Address first = bytes.here();
  const auto row_at = [&](std::uint64_t i, Row& row) {
    return base::safe_copy(first + i * sizeof(Row), &row, sizeof row);
  };
  const auto address = [&](std::int32_t offset) {
    return header + static_cast<std::uint64_t>(static_cast<std::int64_t>(offset));
  };
  Row row;
  std::uint64_t low = 0, high = count;  // the one looked for is in [low, high)
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (!row_at(middle, row)) return 0;
    (address(row.function) <= pc ? low : high) = middle;
  }
  return row_at(low, row) && address(row.function) <= pc ? address(row.entry) : 0;
}

// What the letters of an augmentation stand for. Others make an entry unreadable.
[[nodiscard]] bool take_augmentation(const char* letters, Bytes& bytes, Entry& entry) noexcept {
  if (letters[0] == 0) return true;
  if (letters[0] != 'z') return false;
  entry.has_extra = true;
  Bytes extra = bytes.take(bytes.uleb());
  for (const char* letter = letters + 1; *letter != 0; ++letter) {
    switch (*letter) {
      case 'R': entry.pointers = extra.fixed<std::uint8_t>(); break;
      case 'S': entry.is_signal = true; break;
      case 'L': extra.skip(1); break;
      case 'P': static_cast<void>(extra.encoded(extra.fixed<std::uint8_t>() & 0x7F, 0)); break;
      case 'B':         // aarch64: which key return addresses are signed with
      case 'G': break;  // and that memory is tagged
      default: return false;
    }
  }
  return extra.ok();
}

[[nodiscard]] bool take_common(Bytes bytes, Entry& entry) noexcept {
  constexpr std::size_t kMostLetters = 8;
  if (bytes.fixed<std::uint32_t>() != 0) return false;  // it is no CIE
  const auto version = bytes.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  char letters[kMostLetters] = {};
  for (std::size_t i = 0;; ++i) {
    const auto letter = static_cast<char>(bytes.fixed<std::uint8_t>());
    if (letter == 0) break;
    if (i == kMostLetters - 1) return false;
    letters[i] = letter;
  }
  entry.code_step = bytes.uleb();
  entry.data_step = bytes.sleb();
  entry.return_register = version == 1 ? bytes.fixed<std::uint8_t>() : bytes.uleb();
  if (!take_augmentation(letters, bytes, entry)) return false;
  entry.first = bytes.take(bytes.left());
  return bytes.ok();
}

// Of the last function that does not begin after `pc`.
[[nodiscard]] bool take_entry(const Library& library, Address pc, Entry& entry) noexcept {
  const Address at = library.table != 0 ? find_entry(library.table, pc) : 0;
  if (at == 0) return false;
  Bytes bytes = entry_at(at);
  const Address here = bytes.here();
  const auto back = bytes.fixed<std::uint32_t>();
  if (back == 0 || !take_common(entry_at(here - back), entry)) return false;
  entry.begin = bytes.encoded(entry.pointers, 0);
  entry.end = entry.begin + bytes.encoded(entry.pointers & 0x0F, 0);
  if (entry.has_extra) bytes.skip(bytes.uleb());
  entry.own = bytes.take(bytes.left());
  return bytes.ok();
}

}  // namespace

Extent function_before(const Library& library, Address pc) noexcept {
  Entry entry;
  return take_entry(library, pc, entry) ? Extent{entry.begin, entry.end} : Extent{};
}

Rule find_rule(const Library& library, Address pc) noexcept {
  Entry entry;
  if (!take_entry(library, pc, entry)) return kUnsupported;
  return pc >= entry.begin && pc < entry.end ? rule_at(entry, pc) : kUnsupported;
}

}  // namespace whence::unwind
