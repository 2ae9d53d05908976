// encode.h: the fields of a record as bytes.
//
// Threads: any; only arguments are touched. Allocates: never.
// Fails by: it cannot; the caller has made room (kLongestCompact, or body_size()).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/varint.h"
#include "format/kind.h"

namespace whence::format {

using base::put_varint;

inline constexpr int kAddressTurn = 4;

// A clock that goes back (it should not) stands still instead.
[[gnu::always_inline]] inline std::uint8_t* put_time(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time) noexcept {
  const std::uint64_t delta = time > deltas.time ? time - deltas.time : 0;
  deltas.time += delta;
  return put_varint(out, delta);
}

[[gnu::always_inline]] inline std::uint8_t* put_span(std::uint8_t* out, const Deltas& deltas,
                                                     std::uint64_t span) noexcept {
  return put_varint(out, base::zigzag(static_cast<std::int64_t>(span - deltas.span)));
}

[[gnu::always_inline]] inline std::uint8_t* put_address(std::uint8_t* out, Deltas& deltas,
                                                        std::uint64_t address) noexcept {
  const std::uint64_t turned = std::rotr(address, kAddressTurn);
  const auto delta = static_cast<std::int64_t>(turned - deltas.address);
  deltas.address = turned;
  return put_varint(out, base::zigzag(delta));
}

[[gnu::always_inline]] inline std::uint8_t* put_generator(std::uint8_t* out, Deltas& deltas,
                                                          std::uint64_t generator) noexcept {
  const auto delta = static_cast<std::int64_t>(generator - deltas.generator);
  deltas.generator = generator;
  return put_varint(out, base::zigzag(delta));
}

[[gnu::always_inline]] inline std::uint8_t* put_near_stack(std::uint8_t* out, Deltas& deltas,
                                                           std::uint64_t stack) noexcept {
  const auto delta = static_cast<std::int64_t>(stack - deltas.stack);
  deltas.stack = stack;
  return put_varint(out, base::zigzag(delta));
}

inline std::uint8_t* put_task(std::uint8_t* out, Deltas& deltas, std::uint64_t task) noexcept {
  const auto delta = static_cast<std::int64_t>(task - deltas.task);
  deltas.task = task;
  return put_varint(out, base::zigzag(delta));
}

[[nodiscard]] inline std::uint64_t real_to_bits(double value) noexcept {
  return __builtin_bswap64(std::bit_cast<std::uint64_t>(value));
}
[[nodiscard]] inline double bits_to_real(std::uint64_t bits) noexcept {
  return std::bit_cast<double>(__builtin_bswap64(bits));
}

[[nodiscard]] constexpr std::size_t varint_size(std::uint64_t value) noexcept {
  return value == 0 ? 1 : (static_cast<std::size_t>(std::bit_width(value)) + 6) / 7;
}

// A record with a body: one number, then bytes.
[[nodiscard]] constexpr std::size_t body_size(std::uint64_t number, std::size_t bytes) noexcept {
  const std::size_t body = varint_size(number) + bytes;
  return 1 + varint_size(body) + body;
}
inline std::uint8_t* put_body(std::uint8_t* out, std::uint8_t kind, std::uint64_t number,
                              std::span<const std::uint8_t> bytes) noexcept {
  *out++ = kind;
  out = put_varint(out, varint_size(number) + bytes.size());
  out = put_varint(out, number);
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

}  // namespace whence::format
