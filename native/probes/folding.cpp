// folding.cpp: see folding.h.
#include "probes/folding.h"

#include "base/clock.h"
#include "format/records/call.h"
#include "store/write.h"

namespace whence::probes {

void Folding::hold(stacks::CodeId code) noexcept {
  holds_ = true;
  code_ = code;
  start_ = base::ticks();
}

bool Folding::fold(std::uint32_t recording, std::uint64_t shortest) noexcept {
  const std::uint64_t now = base::ticks();
  const std::uint64_t lasted = now > start_ ? now - start_ : 0;
  if (lasted >= shortest) {
    flush(recording);
    return false;
  }
  if (calls_ != 0 && counted_ != code_) write_count(recording, start_);
  counted_ = code_;
  ++calls_;
  ticks_ += lasted;
  holds_ = false;
  return true;
}

void Folding::flush(std::uint32_t recording) noexcept {
  if (calls_ != 0) write_count(recording, holds_ ? start_ : base::ticks());
  if (!holds_) return;
  holds_ = false;
  store::write_with<format::Call>(recording, [&](store::Cursor& cursor, std::uint64_t) {
    return format::Call::encode(cursor.next(), cursor.deltas, start_, code_);
  });
}

void Folding::write_count(std::uint32_t recording, std::uint64_t time) noexcept {
  store::write_with<format::Folded>(recording, [&](store::Cursor& cursor, std::uint64_t) {
    return format::Folded::encode(cursor.next(), cursor.deltas, time, counted_, calls_, ticks_);
  });
  calls_ = ticks_ = 0;
}

}  // namespace whence::probes
