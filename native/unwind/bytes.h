// bytes.h: reading unwind tables, byte by byte, within bounds and without a fault.
//
// Threads: an instance belongs to one. Allocates: never.
// Fails by: ok() turns false for good, and what is read is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/safe_copy.h"
#include "unwind/registers.h"

namespace whence::unwind {

// How a pointer is written (DW_EH_PE): its form in the low four bits, above them what it is counted
// from.
namespace pointer {
inline constexpr std::uint8_t kAbsolute = 0x00, kUleb = 0x01, kUdata2 = 0x02, kUdata4 = 0x03,
                              kUdata8 = 0x04, kSleb = 0x09, kSdata2 = 0x0A, kSdata4 = 0x0B,
                              kSdata8 = 0x0C, kFromHere = 0x10, kFromData = 0x30, kIndirect = 0x80,
                              kOmitted = 0xFF;
}

// [begin, begin + size) of the process, which may not be there: it is copied a piece at a time in a
// way that cannot fault, and little of the stack is used for it.
class Bytes {
 public:
  Bytes() = default;
  Bytes(Address begin, std::uint64_t size) noexcept
      : next_(begin), end_(begin + size), ok_(begin + size >= begin) {}

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] bool at_end() const noexcept { return next_ >= end_ || !ok_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return ok_ ? end_ - next_ : 0; }
  [[nodiscard]] Address here() const noexcept { return next_; }

  template <class T>
  [[nodiscard]] T fixed() noexcept {
    T value = 0;
    if (!has(sizeof value)) return 0;
    std::memcpy(&value, piece_ + (next_ - piece_begin_), sizeof value);
    next_ += sizeof value;
    return value;
  }

  [[nodiscard]] std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  [[nodiscard]] std::int64_t sleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }

  // The next `size` bytes, as a part.
  [[nodiscard]] Bytes take(std::uint64_t size) noexcept {
    if (size > left()) fail();
    if (!ok_) return {};
    Bytes part(next_, size);
    next_ += size;
    return part;
  }
  void skip(std::uint64_t size) noexcept { static_cast<void>(take(size)); }

  // `data` is what pointers of the kind kFromData count from. Indirect ones are not followed.
  [[nodiscard]] Address encoded(std::uint8_t encoding, Address data) noexcept {
    const Address from = here();
    std::uint64_t value = 0;
    switch (encoding & 0x0F) {
      case pointer::kAbsolute:
      case pointer::kUdata8:
      case pointer::kSdata8: value = fixed<std::uint64_t>(); break;
      case pointer::kUleb: value = uleb(); break;
      case pointer::kUdata2: value = fixed<std::uint16_t>(); break;
      case pointer::kUdata4: value = fixed<std::uint32_t>(); break;
      case pointer::kSleb: value = static_cast<std::uint64_t>(sleb()); break;
      case pointer::kSdata2: value = signed_value(fixed<std::int16_t>()); break;
      case pointer::kSdata4: value = signed_value(fixed<std::int32_t>()); break;
      default: fail();
    }
    switch (encoding & 0x70) {
      case 0x00: return value;
      case pointer::kFromHere: return value + from;
      case pointer::kFromData: return value + data;
      default: fail(); return 0;
    }
  }

 private:
  template <class T>
  [[nodiscard]] static std::uint64_t signed_value(T value) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
  [[nodiscard]] bool has(std::size_t size) noexcept {
    if (left() < size) {
      fail();
    } else if (next_ < piece_begin_ || next_ + size > piece_end_) {
      const std::size_t taken = left() < sizeof piece_ ? left() : sizeof piece_;
      piece_begin_ = next_;
      piece_end_ = next_ + taken;
      if (!base::safe_copy(next_, piece_, taken)) fail();
    }
    return ok_;
  }
  void fail() noexcept { ok_ = false; }

  Address next_ = 0, end_ = 0;
  Address piece_begin_ = 0, piece_end_ = 0;
  bool ok_ = true;
  std::uint8_t piece_[192];
};

}  // namespace whence::unwind
