// memory_taken.h: all blocks that were taken, given back or not, by origin.
//
// Threads: a query belongs to one. Allocates: as a Replay, and 48 bytes an origin.
// Fails by: Next; std::bad_alloc.
//
// Of a slice: those that were taken in it. A state that is told in it has older ones as well.
#pragma once

#include <vector>

#include "read/memory_query.h"

namespace whence::read {

class TakenGroups : public MemoryQuery {
 public:
  using MemoryQuery::MemoryQuery;

  [[nodiscard]] std::vector<MemoryGroup> groups() const { return sums_.groups(replay().origins()); }

 protected:
  [[nodiscard]] bool take(const Change& change) override {
    if (change.what != Change::What::taken || change.is_rest || change.of_segment) return true;
    if (change.block.time >= slice().from && is_wanted(change.block)) sums_.add(change.block);
    return true;
  }

 private:
  MemorySums sums_;
};

}  // namespace whence::read
