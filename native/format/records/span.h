// span.h: a stretch of time with a name.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
//
// Spans are numbered from 1 in each thread. The end says name and duration again: of a long span
// it may be all that a ring has left, and of a program that died the begin is all there is.
#pragma once

#include "format/encode.h"

namespace whence::format {

struct SpanBegin {
  static constexpr Kind kKind{
      0x62,
      "span_begin",
      true,
      {{{"time", Field::time}, {"span", Field::span}, {"name", Field::string}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t span,
                                                     std::uint64_t name) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_span(out, deltas, span);
    deltas.span = span;
    return put_varint(out, name);
  }
};

namespace detail {
[[gnu::always_inline]] inline std::uint8_t* put_span_end(std::uint8_t* out, Deltas& deltas,
                                                         std::uint64_t time, std::uint64_t span,
                                                         std::uint64_t name,
                                                         std::uint64_t duration) noexcept {
  out = put_time(out, deltas, time);
  out = put_span(out, deltas, span);
  out = put_varint(out, name);
  return put_varint(out, duration);
}
}  // namespace detail

struct SpanEnd {
  static constexpr Kind kKind{0x80,
                              "span_end",
                              true,
                              {{{"time", Field::time},
                                {"span", Field::span},
                                {"name", Field::string},
                                {"duration", Field::duration}}}};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t span,
                                                     std::uint64_t name,
                                                     std::uint64_t duration) noexcept {
    *out++ = kKind.code;
    return detail::put_span_end(out, deltas, time, span, name, duration);
  }
};

// Left by an exception.
struct SpanError {
  static constexpr Kind kKind{0x81, "span_error", true, SpanEnd::kKind.fields};

  [[gnu::always_inline]] static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas,
                                                     std::uint64_t time, std::uint64_t span,
                                                     std::uint64_t name,
                                                     std::uint64_t duration) noexcept {
    *out++ = kKind.code;
    return detail::put_span_end(out, deltas, time, span, name, duration);
  }
};

// Ended by another thread than the one that began it, which `owner` names.
struct SpanEndAway {
  static constexpr Kind kKind{0xC1,
                              "span_end_away",
                              true,
                              {{{"time", Field::time},
                                {"owner", Field::thread},
                                {"span", Field::number},
                                {"name", Field::string},
                                {"duration", Field::duration},
                                {"error", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, Deltas& deltas, std::uint64_t time,
                              std::uint64_t owner, std::uint64_t span, std::uint64_t name,
                              std::uint64_t duration, bool error) noexcept {
    *out++ = kKind.code;
    out = put_time(out, deltas, time);
    out = put_varint(out, owner);
    out = put_varint(out, span);
    out = put_varint(out, name);
    out = put_varint(out, duration);
    return put_varint(out, error ? 1 : 0);
  }
};

// What a span was told about itself; see tags.h. Follows the begin, or comes before an end whose
// begin is in an earlier chunk.
struct SpanTags {
  static constexpr Kind kKind{
      0xE2, "span_tags", false, {{{"span", Field::number}, {"tags", Field::bytes}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t span,
                              std::span<const std::uint8_t> tags) noexcept {
    return put_body(out, kKind.code, span, tags);
  }
};

}  // namespace whence::format
