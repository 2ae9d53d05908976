// cursor.cpp: see cursor.h.
#include "read/cursor.h"

namespace whence::read {

Next Cursor::next(format::Record& record) {
  for (;;) {
    if (decoder_.has_value() && decoder_->next(record) == format::Step::record) {
      return Next::record;
    }
    decoder_.reset();
    const auto& entries = source_.entries();
    if (next_entry_ == entries.size()) return Next::end;
    const Entry& entry = entries[next_entry_++];
    if (!is_selected(entry, select_)) continue;
    const Loaded loaded = loader_.load(entry, chunk_);
    if (loaded == Loaded::aborted) return Next::aborted;
    if (loaded == Loaded::good) {
      decoder_.emplace(chunk_.payload, chunk_.header.thread, chunk_.header.start_ticks);
    }
  }
}

}  // namespace whence::read
