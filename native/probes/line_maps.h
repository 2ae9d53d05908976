// line_maps.h: what lines of generated code came from, into the recording.
//
// Threads: any; a writer belongs to one. Allocates: never.
// Fails by: finish() is false; what found no room is counted as a name.
//
// Each part is whole by itself: it begins with the number of its map, so that parts of two maps for
// one file may be written at the same time, and the newer map counts.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "format/records/line_map.h"
#include "store/store.h"

namespace whence::probes {

// Strings of the recording; -1: not known.
struct LineSource {
  std::uint64_t name, filename;
  std::int64_t line, column, end_line, end_column;
};

class LineMapWriter {
 public:
  static constexpr std::size_t kMostSources = 30;  // of one line

  explicit LineMapWriter(std::uint64_t file) noexcept : file_(file) { begin_part(); }

  // From this line on, which is larger than the one before.
  void line(std::int64_t line, std::span<const LineSource> sources) noexcept {
    sources = sources.first(std::min(sources.size(), kMostSources));
    constexpr std::size_t kFields = 6;
    const std::size_t most = (2 + kFields * sources.size()) * base::kLongestVarint;
    if (most > static_cast<std::size_t>(part_.data() + part_.size() - next_)) {
      write_part();
      begin_part();
    }
    put(line);
    put(static_cast<std::int64_t>(sources.size()));
    for (const LineSource& source : sources) {
      next_ = base::put_varint(next_, source.name);
      next_ = base::put_varint(next_, source.filename);
      put(source.line + 1);
      put(source.column + 1);
      put(source.end_line + 1);
      put(source.end_column + 1);
    }
  }
  [[nodiscard]] bool finish() noexcept {
    write_part();
    return good_;
  }

 private:
  void begin_part() noexcept { next_ = base::put_varint(part_.data(), number_); }
  void put(std::int64_t value) noexcept {
    next_ = base::put_varint(next_, static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)));
  }
  void write_part() noexcept {
    const auto part = std::span(part_).first(static_cast<std::size_t>(next_ - part_.data()));
    const auto encode = [&](std::uint8_t* out, format::Deltas&) {
      return format::LineMap::encode(out, file_, part);
    };
    good_ &= store::store().write_metadata(format::body_size(file_, part.size()), encode);
  }

  static inline std::atomic<std::uint64_t> last_ = 0;

  const std::uint64_t file_;
  const std::uint64_t number_ = last_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::array<std::uint8_t, 2048> part_;  // fits into the smallest chunk
  std::uint8_t* next_;
  bool good_ = true;
};

}  // namespace whence::probes
