// memory_history.cpp: see memory_history.h.
#include "read/memory_history.h"

#include <algorithm>

namespace whence::read {
namespace {

using What = Change::What;
using Action = MemoryEvent::Action;

constexpr std::uint64_t kLeastBudget = 64u << 20;

}  // namespace

MemoryHistory::MemoryHistory(const Source& source, const Timeline& timeline, Slice slice,
                             std::uint64_t address, std::optional<std::uint64_t> pool)
    : MemoryQuery(source, timeline, std::move(slice)),
      address_(address),
      budget_(kLeastBudget, source.input().size()) {
  if (pool.has_value()) domain_ = kPool | *pool;
}

bool MemoryHistory::take(const Change& change) {
  MemoryEvent event = change.event;
  if (event.action >= Action::out_of_memory) return true;  // of no one block
  const bool takes = event.takes() || event.action == Action::segment_taken;
  const bool is_known = change.what != What::nothing;
  if (is_known && takes) {  // what ends or is left there is told by what it takes
    if (change.what != What::taken || change.block.address != event.address) return true;
  }
  if (is_pool(event.domain) ? event.domain != domain_ : domain_.has_value()) return true;
  if (event.is_mapping() && event.action == Action::freed) {
    if (is_known && change.what != What::ended) return true;  // what is left of it
    if (is_known) {                                           // what goes of it
      const Range gone = Range::of(event.address, event.size);
      const Range block = Range::of(change.block.address, change.block.size);
      event.address = std::max(gone.first, block.first);
      event.size = std::min(gone.last, block.last) - event.address + 1;
    }
  } else if (is_known && !takes) {
    event.domain = replay().origins()[change.block.origin].domain;
    event.size = change.block.size;
  }
  const Block span{event.address, event.size};
  if (!span.covers(address_)) return true;
  if (is_known ? !is_wanted(change.block) : !slice().has_thread(event.thread)) return true;
  if (budget_.afford(2 * sizeof event)) events_.push_back(event);
  return true;
}

}  // namespace whence::read
