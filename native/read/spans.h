// spans.h: spans put together from their begins, ends and tags.
//
// Threads: a reader of spans belongs to one. Allocates: for spans that are open, up to a bound.
// Fails by: Next; std::bad_alloc.
//
// The end of a span says everything but its tags, so its begin is needed only for those, and for
// spans that never end. Chunks come in the order in which they were opened: a span that one thread
// begins and another ends may show its end first, and then comes without its tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "read/cursor.h"

namespace whence::read {

struct Span {
  std::uint64_t name;    // a string
  std::uint32_t thread;  // that began it
  std::uint64_t start_ticks, end_ticks;
  bool error;  // left by an exception
  bool open;   // never ended; `end_ticks` means nothing
  std::string tags;
};

class SpanReader {
 public:
  explicit SpanReader(const Source& source, std::uint64_t deadline = kNoDeadline)
      : cursor_(source, Select::events, deadline) {}

  // As they end; then those that never did, by their start.
  [[nodiscard]] Next next(Span& span);
  // As of a Cursor.
  [[nodiscard]] std::optional<std::uint64_t> stopped_at() const noexcept {
    return cursor_.stopped_at();
  }

 private:
  struct Key {
    std::uint32_t thread;
    std::uint64_t number;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Open {
    std::uint64_t start_ticks, name;
    bool begun;  // else only its tags are known
    bool ended;  // by another thread, before its begin was read
    std::string tags;
  };

  [[nodiscard]] bool take(const format::Record& record, Span& span);
  void begin(const format::Record& record);
  void keep_tags(const format::Record& record);
  void end(Key key, std::uint64_t name, std::uint64_t end, std::uint64_t duration, Span& span);
  [[nodiscard]] bool next_open(Span& span);
  [[nodiscard]] Open* remember(Key key);

  Cursor cursor_;
  std::unordered_map<Key, Open, Hash> open_;
  std::size_t kept_bytes_ = 0;  // of tags
  bool all_read_ = false;
  std::vector<std::pair<Key, Open>> left_;  // open at the end, last one first
};

}  // namespace whence::read
