// live_segments.cpp: see live_segments.h.
#include "read/live_segments.h"

#include <algorithm>
#include <tuple>

namespace whence::read {

void LiveSegments::finish() {
  replay().for_each_segment([&](const Block& segment) {
    if (!is_wanted(segment)) return;
    const Origin& origin = replay().origins()[segment.origin];
    segments_.push_back({segment.time, kNeverEnds, segment.address, segment.size, origin.domain,
                         origin.stack, origin.thread});
  });
  std::ranges::sort(segments_, [](const BlockRow& a, const BlockRow& b) {
    return std::tie(b.size, a.domain, a.address) < std::tie(a.size, b.domain, b.address);
  });
  segments_.resize(std::min(segments_.size(), most_));
  std::ranges::sort(segments_, [](const BlockRow& a, const BlockRow& b) {
    return std::tie(a.domain, a.address) < std::tie(b.domain, b.address);
  });
}

}  // namespace whence::read
