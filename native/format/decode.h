// decode.h: the payload of a chunk as records.
//
// Threads: a decoder belongs to one. Allocates: never.
// Fails by: Step::damaged, for any bytes whatever; nothing outside the payload is read.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "format/kind.h"

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

  [[nodiscard]] Step next(Record& record) noexcept;
  // Where the next record begins; after `damaged`, where the bad one does.
  [[nodiscard]] const std::uint8_t* position() const noexcept { return next_; }
  [[nodiscard]] std::uint32_t thread() const noexcept { return thread_; }

 private:
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
