// cursor.cpp: see cursor.h.
#include "read/cursor.h"

namespace whence::read {

// The first record of the next chunk that has one.
Next Cursor::next_chunk(format::Record& record) {
  for (;;) {
    decoder_.reset();
    const auto& entries = source_.entries();
    if (next_entry_ == entries.size()) return Next::end;
    const Entry& entry = entries[next_entry_++];
    if (!is_selected(entry, select_)) continue;
    const Loaded loaded = loader_.load(entry, chunk_);
    if (loaded == Loaded::aborted) return Next::aborted;
    if (loaded == Loaded::good) {
      decoder_.emplace(chunk_.payload, chunk_.header.thread, chunk_.header.start_ticks);
      if (decoder_->next(record) == format::Step::record) return Next::record;
    }
  }
}

}  // namespace whence::read
