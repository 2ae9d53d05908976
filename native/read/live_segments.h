// live_segments.h: the segments that pools hold at the end.
//
// Threads: a query belongs to one. Allocates: as a Replay, and 56 bytes a segment that it keeps.
// Fails by: Next; std::bad_alloc.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "read/memory_blocks.h"

namespace whence::read {

class LiveSegments : public MemoryQuery {
 public:
  LiveSegments(const Source& source, const Timeline& timeline, Slice slice, std::size_t most)
      : MemoryQuery(source, timeline, std::move(slice)), most_(most) {}

  // In the end: the largest, by pool and address.
  [[nodiscard]] const std::vector<BlockRow>& segments() const noexcept { return segments_; }

 protected:
  [[nodiscard]] bool take(const Change&) override { return true; }
  void finish() override;

 private:
  std::size_t most_;
  std::vector<BlockRow> segments_;
};

}  // namespace whence::read
