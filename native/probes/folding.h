// folding.h: short calls, counted instead of recorded one by one.
//
// Threads: each its own. Allocates: never. Fails by: as store::write.
//
// A call that may turn out to be short is held back until it calls something, or returns. If it
// returns soon, having called nothing, it is added to a count of such calls of the same function by
// the same caller, which is written when anything else is. So what is held back is one call and one
// count; a process that is killed loses those.
#pragma once

#include <cstdint>

#include "stacks/stack_table.h"

namespace whence::probes {

class Folding {
 public:
  // Is the innermost open frame one that is held back?
  [[nodiscard]] bool holds() const noexcept { return holds_; }
  void hold(stacks::CodeId code) noexcept;
  // The call that is held back returns: was it short?
  [[nodiscard]] bool fold(std::uint32_t recording, std::uint64_t shortest) noexcept;
  // Writes what is held back: something else is about to be written.
  void flush(std::uint32_t recording) noexcept;
  void forget() noexcept { *this = {}; }

 private:
  void write_count(std::uint32_t recording, std::uint64_t time) noexcept;

  bool holds_ = false;
  stacks::CodeId code_ = 0;  // of the call that is held back
  std::uint64_t start_ = 0;
  stacks::CodeId counted_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t ticks_ = 0;
};

}  // namespace whence::probes
