// stack_entries.h: the stacks of a recording by their numbers, each a frame and its caller.
//
// Threads: any, once finished. Allocates: kStackCost for each. Fails by: nullptr; std::bad_alloc.
//
// A program with native frames has a stack for nearly every place that memory is taken from:
// hundreds of thousands, which take four bytes each in a packed file. So they lie in rows as they
// come, and an index of their places is made once all are there. Where a number comes twice, the
// later one counts.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "read/id_map.h"

namespace whence::read {

struct StackEntry {
  // A native frame is at an address of a module, or of none if it is a remark. A run is of Python
  // frames, which are a stack of their own.
  enum class What : std::uint8_t { python, native, run };

  std::uint64_t parent;
  std::uint64_t of;         // a code, a module, a stack
  std::int64_t offset = 0;  // in the code; the address
  What what = What::python;

  // Of a Python frame, or 0.
  [[nodiscard]] std::uint64_t code() const noexcept { return what == What::python ? of : 0; }
};

// What one takes in memory, at most.
inline constexpr std::size_t kStackCost = 72;

class StackEntries {
 public:
  void add(std::uint64_t id, const StackEntry& entry) { rows_.push_back({id, entry}); }

  // After the last one.
  void finish() {
    index_.assign(std::bit_ceil(2 * rows_.size() + 1), kNowhere);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      index_[place_of(rows_[row].id)] = static_cast<std::uint32_t>(row);
    }
  }

  [[nodiscard]] const StackEntry* find(std::uint64_t id) const noexcept {
    if (rows_.empty()) return nullptr;
    const std::uint32_t row = index_[place_of(id)];
    return row != kNowhere ? &rows_[row].entry : nullptr;
  }

  // visit(entry) for each, also where a later one has its number.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Row& row : rows_) visit(row.entry);
  }

 private:
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

  struct Row {
    std::uint64_t id;
    StackEntry entry;
  };
  static_assert(sizeof(Row) + 4 * sizeof(std::uint32_t) <= kStackCost);

  // Where it is in the index, or belongs. There is always an empty place.
  [[nodiscard]] std::size_t place_of(std::uint64_t id) const noexcept {
    const std::size_t mask = index_.size() - 1;
    std::size_t place = IdHash()(id) & mask;
    while (index_[place] != kNowhere && rows_[index_[place]].id != id) place = (place + 1) & mask;
    return place;
  }

  std::deque<Row> rows_;
  std::vector<std::uint32_t> index_;  // of rows, by a hash of their numbers
};

}  // namespace whence::read
