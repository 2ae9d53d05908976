// decode.h: the payload of a chunk as records.
//
// Threads: a decoder belongs to one. Allocates: never.
// Fails by: Step::damaged, for any bytes whatever; nothing outside the payload is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/kinds.h"

namespace whence::format {

// Fields are resolved: times are ticks, spans and addresses absolute, signed numbers as two's
// complement, reals as the bits of a double.
struct Record {
  const Kind* kind;  // nullptr: not known to this version
  std::uint8_t code;
  std::uint32_t thread;
  std::uint64_t time;  // of this record, or of the one before it if it has none
  std::array<std::uint64_t, kMostFields> values;
  std::span<const std::uint8_t> bytes;  // a view into the payload
};

enum class Step { record, end, damaged };

class Decoder {
 public:
  Decoder(std::span<const std::uint8_t> payload, std::uint32_t thread,
          std::uint64_t start_ticks) noexcept
      : next_(payload.data()), end_(next_ + payload.size()), thread_(thread) {
    deltas_.time = start_ticks;
  }

  // Most records are plain and short: those are read here.
  [[nodiscard, gnu::always_inline]] Step next(Record& record) noexcept {
    constexpr std::ptrdiff_t kEnough = 32;  // for a kind and numbers of up to three bytes
    if (end_ - next_ < kEnough) [[unlikely]]
      return next_slowly(record);
    const KindInfo& info = kKinds[*next_];
    if (!info.plain) return next_slowly(record);
    const std::uint8_t* in = next_ + 1;
    const unsigned shape = shape_of(*next_);
    for (unsigned i = 0; i < shape; ++i) {
      std::uint64_t value = in[0];
      if (value < 0x80) {
        in += 1;
      } else if (in[1] < 0x80) {
        value = (value & 0x7F) | std::uint64_t{in[1]} << 7;
        in += 2;
      } else if (in[2] < 0x80) {
        value = (value & 0x7F) | std::uint64_t{in[1] & 0x7Fu} << 7 | std::uint64_t{in[2]} << 14;
        in += 3;
      } else {
        return next_slowly(record);
      }
      record.values[i] = value;
    }
    record.code = *next_;
    record.kind = info.kind;
    record.thread = thread_;
    record.bytes = {};
    record.time = record.values[0] = deltas_.time += record.values[0];
    next_ = in;
    return Step::record;
  }
  // Where the next record begins; after `damaged`, where the bad one does.
  [[nodiscard]] const std::uint8_t* position() const noexcept { return next_; }
  [[nodiscard]] std::uint32_t thread() const noexcept { return thread_; }

 private:
  [[nodiscard]] Step next_slowly(Record& record) noexcept;
  [[nodiscard]] const std::uint8_t* read_body(const std::uint8_t* in, Record& record,
                                              std::size_t& count) noexcept;
  [[nodiscard]] const std::uint8_t* read_fields(const std::uint8_t* in, const std::uint8_t* end,
                                                std::size_t count, Record& record) noexcept;
  void resolve(Record& record, std::size_t count) noexcept;
  void take_over(const Record& record) noexcept;

  const std::uint8_t* next_;
  const std::uint8_t* end_;
  std::uint32_t thread_;
  Deltas deltas_;
};

}  // namespace whence::format
