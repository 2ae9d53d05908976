// tags.h: the tags of a span: names with small values.
//
// Threads: any; only arguments are touched. Allocates: never.
// Fails by: TagReader::next() returns false at the end, and damaged() tells why.
//
// Each tag is the number of a string, a type byte and the value. Values longer than kLongestText
// are cut there.
#pragma once

#include <cstdint>
#include <span>

#include "format/encode.h"

namespace whence::format {

enum class TagType : std::uint8_t {
  none = 0,
  no = 1,
  yes = 2,
  integer = 3,  // zigzag varint
  real = 4,     // eight bytes
  text = 5,     // varint length, UTF-8
  other = 6,    // the same, holding the name of a type whose values are not kept
};

inline constexpr std::size_t kLongestText = 1024;
inline constexpr std::size_t kMostTagBytes = 4096 - 256;  // fits into the smallest chunk

struct Tag {
  std::uint64_t key;
  TagType type;
  std::int64_t integer;
  double real;
  std::span<const std::uint8_t> text;
};

// A tag takes at most this many bytes beside its text.
inline constexpr std::size_t kTagOverhead = 2 * base::kLongestVarint + 1;

[[nodiscard]] std::uint8_t* put_tag(std::uint8_t* out, const Tag& tag) noexcept;

class TagReader {
 public:
  explicit TagReader(std::span<const std::uint8_t> bytes) noexcept
      : next_(bytes.data()), end_(next_ + bytes.size()) {}
  [[nodiscard]] bool next(Tag& tag) noexcept;
  [[nodiscard]] bool damaged() const noexcept { return next_ != end_; }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

}  // namespace whence::format
