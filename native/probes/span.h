// span.h: a stretch of time with a name, begun and ended.
//
// Threads: any; a span may end on another thread than it began on, but not on two at once.
// Allocates: never, but for a thread's chunk.
// Fails by: begin() returns false; end() of such a span does nothing.
#pragma once

#include <cstdint>
#include <span>

#include "format/records/span.h"
#include "store/write.h"

namespace whence::probes {

struct Span {
  std::uint64_t name;    // a string of the recording
  std::uint64_t start;   // ticks; 0: it was not recorded
  std::uint64_t number;  // in its thread
  std::uint64_t chunk;   // which of the thread's chunks has its begin
  std::uint32_t thread;
  std::uint32_t generation;  // of the recording
};

namespace detail {
inline void write_tags(const Span& span, std::span<const std::uint8_t> tags) noexcept {
  const std::size_t size = format::body_size(span.number, tags.size());
  store::write_body(span.generation, size, [&](std::uint8_t* out) {
    return format::SpanTags::encode(out, span.number, tags);
  });
}
}  // namespace detail

// `span.generation` says for which recording, and `span.name` is a string of that. Tags are written
// after the begin, and once more before the end if that is in another chunk.
inline bool begin(Span& span, std::span<const std::uint8_t> tags = {}) noexcept {
  const auto encode = [&](store::Cursor& cursor, std::uint64_t now) {
    span.number = ++cursor.spans;
    span.thread = cursor.thread;
    span.chunk = cursor.chunks;
    return format::SpanBegin::encode(cursor.next(), cursor.deltas, now, span.number, span.name);
  };
  span.start = store::write_with<format::SpanBegin>(span.generation, encode);
  if (span.start == 0) return false;
  if (!tags.empty()) detail::write_tags(span, tags);
  return true;
}

// The span's duration in ticks; 0 if it was not recorded.
inline std::uint64_t end(Span& span, bool error, std::span<const std::uint8_t> tags = {}) noexcept {
  if (span.start == 0 || span.generation != store::store().generation()) [[unlikely]]
    return 0;
  const store::Cursor* own = store::detail::this_cursor;
  if (!tags.empty() && own != nullptr && own->generation == span.generation &&
      own->thread == span.thread && own->chunks != span.chunk) {
    detail::write_tags(span, tags);
  }
  const std::uint64_t start = span.start;
  span.start = 0;
  const auto encode = [&](store::Cursor& cursor, std::uint64_t now) {
    const std::uint64_t duration = now > start ? now - start : 0;
    if (cursor.thread != span.thread) [[unlikely]] {
      return format::SpanEndAway::encode(cursor.next(), cursor.deltas, now, span.thread,
                                         span.number, span.name, duration, error);
    }
    return error ? format::SpanError::encode(cursor.next(), cursor.deltas, now, span.number,
                                             span.name, duration)
                 : format::SpanEnd::encode(cursor.next(), cursor.deltas, now, span.number,
                                           span.name, duration);
  };
  const std::uint64_t now = store::write_with<format::SpanEnd>(span.generation, encode);
  return now > start ? now - start : 0;
}

}  // namespace whence::probes
