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
  // `thread_base` is added to every thread that a record names, and is in `thread` already.
  Decoder(std::span<const std::uint8_t> payload, std::uint32_t thread, std::uint64_t start_ticks,
          std::uint32_t thread_base = 0) noexcept
      : next_(payload.data()),
        end_(next_ + payload.size()),
        thread_(thread),
        thread_base_(thread_base) {
    deltas_.time = start_ticks;
  }

  // Most records are plain and short: those are read here.
  [[nodiscard, gnu::always_inline]] Step next(Record& record) noexcept {
    if (end_ - next_ < kEnough) [[unlikely]]
      return next_slowly(record);
    const KindInfo& info = kKinds[*next_];
    if (!info.plain) return next_slowly(record);
    const std::uint8_t* in = next_ + 1;
    const unsigned shape = shape_of(*next_);
    for (unsigned i = 0; i < shape; ++i) {
      in = get_short(in, record.values[i]);
      if (in == nullptr) return next_slowly(record);
    }
    record.code = *next_;
    record.kind = info.kind;
    record.thread = thread_;
    record.bytes = {};
    record.time = record.values[0] = deltas_.time += record.values[0];
    next_ = in;
    return Step::record;
  }

  // For readers that know what comes most often and want no more of it than its numbers: what kind
  // the next record is of (0: too near to the end to look), its numbers as they are written, the
  // first of which is a time, and that it is taken. Only for kinds that are plain.
  [[nodiscard]] std::uint8_t peek() const noexcept {
    return end_ - next_ >= kEnough ? *next_ : std::uint8_t{0};
  }
  // Where the record ends; nullptr: a number is too long for this.
  template <std::size_t kFields>
  [[nodiscard, gnu::always_inline]] const std::uint8_t* glance(
      std::array<std::uint64_t, kFields>& values) const noexcept {
    const std::uint8_t* in = next_ + 1;
    for (std::uint64_t& value : values) {
      in = get_short(in, value);
      if (in == nullptr) return nullptr;
    }
    values[0] += deltas_.time;
    return in;
  }
  void pass(const std::uint8_t* end, std::uint64_t time) noexcept {
    next_ = end;
    deltas_.time = time;
  }

  // Where the next record begins; after `damaged`, where the bad one does.
  [[nodiscard]] const std::uint8_t* position() const noexcept { return next_; }
  [[nodiscard]] std::uint32_t thread() const noexcept { return thread_; }
  // What the thread has said about the record read last: a string; 0: nothing.
  [[nodiscard]] std::uint64_t tags() const noexcept { return tags_; }

 private:
  static constexpr std::ptrdiff_t kEnough = 32;  // for a kind and numbers of up to three bytes

  // A number of up to three bytes; nullptr: it is longer.
  [[nodiscard, gnu::always_inline]] static const std::uint8_t* get_short(
      const std::uint8_t* in, std::uint64_t& value) noexcept {
    value = in[0];
    if (value < 0x80) return in + 1;
    value = (value & 0x7F) | std::uint64_t{in[1] & 0x7Fu} << 7;
    if (in[1] < 0x80) return in + 2;
    value |= std::uint64_t{in[2]} << 14;
    return in[2] < 0x80 ? in + 3 : nullptr;
  }
  [[nodiscard]] Step next_slowly(Record& record) noexcept;
  [[nodiscard]] const std::uint8_t* read_body(const std::uint8_t* in, Record& record,
                                              std::size_t& count) noexcept;
  [[nodiscard]] const std::uint8_t* read_fields(const std::uint8_t* in, const std::uint8_t* end,
                                                std::size_t count, Record& record) noexcept;
  void resolve(Record& record, std::size_t count) noexcept;
  void take_over(const Record& record) noexcept;

  const std::uint8_t* next_;
  const std::uint8_t* end_;
  std::uint32_t thread_, thread_base_;
  std::uint64_t tags_ = 0;
  Deltas deltas_;
};

}  // namespace whence::format
