// cursor.cpp: see cursor.h.
#include "read/cursor.h"

#include "base/clock.h"

namespace whence::read {

// The first record of the next chunk that has one.
Next Cursor::next_chunk(format::Record& record) {
  for (;;) {
    decoder_.reset();
    const auto& entries = source_.entries();
    if (next_entry_ == entries.size()) return Next::end;
    const Entry& entry = entries[next_entry_];
    const bool selected = is_selected(entry, select_);
    const bool is_late =
        (stop_ticks_.has_value() && entry.start_ticks >= *stop_ticks_) ||
        (deadline_ != kNoDeadline && base::nanoseconds(CLOCK_MONOTONIC) >= deadline_);
    if (selected && is_late) {
      stopped_at_ = entry.start_ticks;
      return Next::end;
    }
    ++next_entry_;
    if (!selected) continue;
    const Loaded loaded = loader_.load(entry, chunk_);
    if (loaded == Loaded::aborted) return Next::aborted;
    if (loaded == Loaded::good) {
      const std::uint32_t base = source_.shifts().thread;
      const std::uint32_t thread = chunk_.header.thread != 0 ? chunk_.header.thread + base : 0;
      decoder_.emplace(chunk_.payload, thread, chunk_.header.start_ticks, base);
      if (decoder_->next(record) == format::Step::record) return Next::record;
    }
  }
}

}  // namespace whence::read
