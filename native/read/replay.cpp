// replay.cpp: see replay.h.
#include "read/replay.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace whence::read {
namespace {

using Action = MemoryEvent::Action;
using What = Change::What;

// Ten million blocks. A packed file may have more of them than it has bytes, so the least is what
// programs need.
constexpr std::uint64_t kLeastBudget = std::uint64_t{1} << 30;
constexpr std::uint64_t kPerByte = 4;  // of 16 bytes each, see Budget
constexpr std::int64_t kLatest = 1'000'000;
constexpr std::size_t kMostLate = 1 << 16;
constexpr std::size_t kThreadCost = 256;
constexpr std::uint32_t kProcess = 1, kMapped = 2;  // pools come after these

}  // namespace

Replay::Replay(const Source& source, const Timeline& timeline, std::int64_t end,
               std::uint64_t deadline)
    : source_(source),
      timeline_(timeline),
      end_(end),
      budget_(kLeastBudget, source.input().size() * kPerByte),
      events_(source, timeline, deadline) {}

Replay::Thread& Replay::thread(std::uint32_t id) {
  if (thread_ != nullptr && thread_id_ == id) return *thread_;
  auto found = threads_.find(id);
  if (found == threads_.end()) {
    if (!budget_.afford(kThreadCost)) return nobody_;
    found = threads_.try_emplace(id).first;
  }
  thread_id_ = id;
  thread_ = &found->second;
  return *thread_;
}

std::uint32_t Replay::space_of(std::uint64_t domain) {
  if (domain == static_cast<std::uint64_t>(format::Domain::mmap)) return kMapped;
  if (!is_pool(domain)) return kProcess;
  const auto found = pools_.find(domain);
  if (found != pools_.end()) return found->second;
  if (!budget_.afford(kEntryCost)) return 0;
  const auto space = static_cast<std::uint32_t>(pools_.size() + 1 + kMapped);
  return pools_.emplace(domain, space).first->second;
}

LiveBlocks& Replay::blocks_of(std::uint32_t space) noexcept {
  return space <= kMapped ? own_ : pooled_;
}

std::uint32_t Replay::origin_of(const MemoryEvent& event) {
  return origins_.number({event.stack, event.domain, event.thread, event.tags}, budget_);
}

bool Replay::was_paused_since(const Block& block, std::int64_t now) const noexcept {
  const auto next = std::upper_bound(starts_->begin(), starts_->end(), block.time);
  return next != starts_->end() && *next <= now;
}

// Ends the block that is where one is to be taken; false if there is none.
bool Replay::end_before(Change& change) {
  const MemoryEvent& event = change.event;
  const std::uint32_t space = space_of(event.domain);
  const Block* old = blocks_of(space).find(space, event.address);
  if (old == nullptr) return false;
  change.what = What::ended;
  change.block = *old;
  if (!was_paused_since(*old, event.time)) {
    ++counts_.contradictions;
    if (late_.size() >= kMostLate) late_.clear();
    late_[{space, event.address}] = {event.time, event.thread};
  }
  blocks_of(space).erase(old);
  return true;
}

void Replay::take(Change& change) {
  const MemoryEvent& event = change.event;
  counts_.taken += event.action != Action::in_use;
  const std::uint32_t space = space_of(event.domain);
  const Block block{event.address,    event.size, event.taken, ++thread(event.thread).taken,
                    origin_of(event), space};
  if (space == 0) return;
  const bool is_in =
      event.is_mapping() ? insert_mapping(block) : blocks_of(space).insert(block, budget_);
  if (!is_in) return;
  change.what = What::taken;
  change.block = block;
}

bool Replay::comes_late(const MemoryEvent& event, std::uint32_t space) {
  if (late_.empty()) return false;
  const auto found = late_.find({space, event.address});
  if (found == late_.end() || found->second.thread == event.thread) return false;
  const bool in_time = event.time - found->second.time <= kLatest;
  late_.erase(found);
  return in_time;
}

void Replay::end(const Block* block, Change& change) {
  change.what = What::ended;
  change.block = *block;
  blocks_of(block->space).erase(block);
  change.further = std::numeric_limits<std::uint64_t>::max();
  if (change.block.origin != Origins::kUnknown) {
    change.further = thread(origins_[change.block.origin].thread).taken - change.block.serial;
  }
}

void Replay::free(Change& change) {
  const MemoryEvent& event = change.event;
  ++counts_.freed;
  const std::uint32_t space = space_of(event.domain);
  Thread& self = thread(event.thread);
  self.last = Last::none;
  if (event.is_mapping()) {
    if (!unmap_next(change)) ++counts_.before;
    return;
  }
  if (comes_late(event, space)) return;
  const Block* block = blocks_of(space).find(space, event.address);
  if (block == nullptr) {
    ++counts_.before;
    self.last = Last::before;
    self.block = {event.address, 0, 0, 0, 0, space};
    return;
  }
  end(block, change);
  self.last = Last::block;
  self.block = change.block;
  self.further = change.further;
  self.ended = event.time;
}

bool Replay::insert_mapping(const Block& block) {
  const Range range = Range::of(block.address, block.size);
  if (!mapped_.add(range, budget_)) return false;
  if (own_.insert(block, budget_)) return true;
  static_cast<void>(mapped_.take(range, budget_));
  return false;
}

// Ends the next mapping of which the pending event takes something; false if there is none.
bool Replay::unmap_next(Change& change) {
  const Range gone = Range::of(pending_.address, pending_.size);
  const auto range = mapped_.take(gone, budget_);
  if (!range.has_value()) return false;
  const Block* block = own_.find(kMapped, range->first);
  if (pending_.takes() && !was_paused_since(*block, pending_.time)) ++counts_.contradictions;
  end(block, change);
  const auto keep = [&](std::uint64_t first, std::uint64_t size) {
    Change rest = change;
    rest.block.address = first;
    rest.block.size = size;
    if (!insert_mapping(rest.block)) return;
    rest.is_rest = true;
    rest.what = rests_ == 0 ? What::returned : What::taken;
    rest_[rests_++] = rest;
  };
  if (range->first < gone.first) keep(range->first, gone.first - range->first);
  if (gone.last < range->last) keep(gone.last + 1, range->last - gone.last);
  return true;
}

void Replay::bring_back(Change& change) {
  Thread& self = thread(change.event.thread);
  const Last last = self.last;
  self.last = Last::none;
  if (last == Last::none || self.block.space != kProcess ||
      self.block.address != change.event.address) {
    return;
  }
  if (last == Last::before) {
    --counts_.before;
    return;
  }
  if (own_.find(kProcess, change.event.address) != nullptr) return;
  if (!own_.insert(self.block, budget_)) return;
  change.what = What::returned;
  change.block = self.block;
  change.further = self.further;
  change.ended = self.ended;
}

// Ends the segment that begins there; false if there is none.
bool Replay::end_segment(Change& change) {
  change.of_segment = true;
  const Block* old = segments_.find(space_of(change.event.domain), change.event.address);
  if (old == nullptr) return false;
  change.what = What::ended;
  change.block = *old;
  segments_.erase(old);
  return true;
}

void Replay::take_segment(Change& change) {
  const MemoryEvent& event = change.event;
  change.of_segment = true;
  const Block segment{event.address,         event.size, event.time, 0, origin_of(event),
                      space_of(event.domain)};
  if (segment.space == 0 || !segments_.insert(segment, budget_)) return;
  change.what = What::taken;
  change.block = segment;
}

// In the order of addresses: that of the table is another one each time. A file may have a state in
// every few bytes, so each must cost no more than what was told since the one before.
void Replay::begin_clearing() {
  if (own_.size() == 0) return;
  own_.for_each([&](const Block& block) { clearing_.push_back({block.space, block.address}); });
  std::sort(clearing_.begin(), clearing_.end(), [](const Where& a, const Where& b) {
    return std::tie(b.space, b.address) < std::tie(a.space, a.address);
  });
}

// Ends the next block of the process; false if there is none, and then the state is told.
bool Replay::clear_next(Change& change) {
  if (clearing_.empty()) {
    own_.clear(budget_);
    return false;
  }
  const Block* block = own_.find(clearing_.back().space, clearing_.back().address);
  clearing_.pop_back();
  if (block->space == kMapped) {
    static_cast<void>(mapped_.take(Range::of(block->address, block->size), budget_));
  }
  end(block, change);
  change.further = std::numeric_limits<std::uint64_t>::max();  // nobody knows when it ended
  return true;
}

// What is left to do for the event before; false: nothing.
bool Replay::go_on(Change& change) {
  change.event = pending_;
  if (rests_ != 0) {
    change = rest_[0];
    rest_[0] = rest_[--rests_];
    return true;
  }
  if (is_clearing_) {
    is_clearing_ = clear_next(change);
    return true;
  }
  if (is_unmapping_ && unmap_next(change)) return true;
  is_unmapping_ = false;
  if (!is_pending_) return false;
  is_pending_ = false;
  change.event.takes() ? take(change) : take_segment(change);
  return true;
}

Next Replay::next(Change& change) {
  change = {};
  if (!starts_.has_value()) starts_ = memory_starts(source_, timeline_);
  if (!starts_.has_value()) return Next::aborted;
  if (go_on(change)) return Next::record;
  const Next next = events_.next(change.event);
  if (next != Next::record) return next;
  if (change.event.time >= end_) return Next::end;
  switch (change.event.action) {
    case Action::taken:
    case Action::moved:
    case Action::in_use:
      pending_ = change.event;
      is_unmapping_ = change.event.is_mapping();
      is_pending_ = is_unmapping_ ? unmap_next(change) : end_before(change);
      if (!is_pending_) {
        is_unmapping_ = false;
        take(change);
      }
      break;
    case Action::freed:
      pending_ = change.event;
      is_unmapping_ = change.event.is_mapping();
      free(change);
      break;
    case Action::not_freed: bring_back(change); break;
    case Action::segment_taken:
      is_pending_ = end_segment(change);
      if (is_pending_) {
        pending_ = change.event;
      } else {
        take_segment(change);
      }
      break;
    case Action::segment_freed: static_cast<void>(end_segment(change)); break;
    case Action::out_of_memory: ++counts_.out_of_memory; break;
    case Action::resident:
    case Action::no_news: break;
    case Action::state:
      pending_ = change.event;
      begin_clearing();
      is_clearing_ = clear_next(change);
      break;
  }
  return Next::record;
}

}  // namespace whence::read
