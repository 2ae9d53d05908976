// builder.h: columns from things that are told again and again.
//
// Threads: one. Allocates: the columns, and a table of places for each that is looked up.
// Fails by: std::bad_alloc; std::length_error for more than fits, four billion of anything.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "handles/columns.h"

namespace whence::handles {

// Places in a column by what stands there: open addressing, at most half full.
class Places {
 public:
  // The place of an equal one, or `next`, which is then taken for it. `equal` is asked about
  // places with the same hash.
  template <class Equal>
  [[nodiscard]] std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, Equal equal) {
    if (used_ * 2 >= slots_.size()) grow();
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      Slot& slot = slots_[at];
      if (slot.place == kNone) {
        slot = {hash, next};
        ++used_;
        return next;
      }
      if (slot.hash == hash && equal(slot.place)) return slot.place;
    }
  }

 private:
  struct Slot {
    std::uint64_t hash;
    std::uint32_t place;
  };

  void grow();

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
};

class Builder {
 public:
  // Each gives the place of an equal one that was there before, or of this one.
  [[nodiscard]] std::uint32_t string(std::string_view text);
  [[nodiscard]] std::uint32_t range(const Range& range);
  [[nodiscard]] std::uint32_t call(const Call& call);

  // Handles go up. An edge is of the last record.
  void record(const Record& record);
  void edge(std::uint32_t kind, std::span<const std::int64_t> parents);
  void top(std::uint32_t string) noexcept { columns_.top = string; }
  void reserve(std::size_t records) { columns_.records.reserve(records); }

  [[nodiscard]] Columns finish() noexcept { return std::move(columns_); }

 private:
  Columns columns_;
  Places strings_;
  Places ranges_;
  Places calls_;
};

}  // namespace whence::handles
