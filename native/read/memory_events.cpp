// memory_events.cpp: see memory_events.h.
#include "read/memory_events.h"

#include <algorithm>

#include "format/records/in_use.h"
#include "format/records/pool.h"

namespace whence::read {
namespace {

using Action = MemoryEvent::Action;

// Programs pause a few times; a file may claim anything.
constexpr std::size_t kMostStarts = 1 << 16;
constexpr std::size_t kMostPassedOver = 1 << 16;  // some milliseconds

[[nodiscard]] bool convert(const format::Record& record, MemoryEvent& event) noexcept {
  const auto& v = record.values;
  const std::uint8_t code = record.code;
  event = {Action::taken, record.thread, 0, 0, 0, 0, 0};
  const auto block = [&](Action action, std::uint64_t domain) {
    event.action = action;
    event.domain = domain;
    event.address = v[1];
    event.size = v[2];
    event.stack = v[3];
    return true;
  };
  if (code >= format::kAllocatedCode && code < format::kAllocatedCode + format::kDomains) {
    return block(Action::taken, code - format::kAllocatedCode);
  }
  if (code >= format::kMovedCode && code < format::kMovedCode + format::kDomains) {
    return block(Action::moved, code - format::kMovedCode);
  }
  if (code >= format::kInUseCode && code < format::kInUseCode + format::kDomains) {
    const auto owner = static_cast<std::uint32_t>(v[1]);
    event = {Action::in_use, owner, 0, std::uint64_t{code} - format::kInUseCode, v[2], v[3], v[4]};
    return true;
  }
  event.address = v[1];
  switch (code) {
    case format::FreedAt::kKind.code: event.stack = v[2]; [[fallthrough]];
    case format::Freed::kKind.code: event.action = Action::freed; return true;
    case format::Unmapped::kKind.code:
      return block(Action::freed, static_cast<std::uint64_t>(format::Domain::mmap));
    case format::NotFreed::kKind.code: event.action = Action::not_freed; return true;
    case format::PoolAllocated::kKind.code:
      event = {Action::taken, record.thread, 0, kPool | v[1], v[2], v[3], v[4]};
      return true;
    case format::PoolFreed::kKind.code:
      event = {Action::freed, record.thread, 0, kPool | v[1], v[2], 0, v[3]};
      return true;
    case format::SegmentAllocated::kKind.code:
      event = {Action::segment_taken, record.thread, 0, kPool | v[1], v[2], v[3], v[4]};
      return true;
    case format::SegmentFreed::kKind.code:
      event = {Action::segment_freed, record.thread, 0, kPool | v[1], v[2], 0, v[3]};
      return true;
    case format::OutOfMemory::kKind.code: {
      const std::uint64_t domain = v[1] < format::kDomains ? v[1] : kPool | v[1];
      event = {Action::out_of_memory, record.thread, 0, domain, 0, v[2], v[4]};
      event.available = v[3];
      return true;
    }
    case format::Resident::kKind.code:
      event = {Action::resident, record.thread, 0, 0, 0, v[1], 0};
      return true;
    case format::MemoryState::kKind.code:
      event = {Action::state, record.thread, 0, 0, 0, 0, 0};
      return true;
    default: return false;
  }
}

}  // namespace

Next MemoryEvents::next(MemoryEvent& event) {
  format::Record record;
  for (std::size_t passed_over = 0;; ++passed_over) {
    const Next next = records_.next(record);
    if (next != Next::record) return next;
    if (!convert(record, event)) {
      if (passed_over < kMostPassedOver) continue;
      event = {Action::no_news, record.thread, 0, 0, 0, 0, 0};
    }
    event.time = timeline_.at(record.time, stretch_);
    event.taken = event.time;
    event.tags = records_.tags();
    if (event.action == Action::in_use) {
      event.taken = timeline_.at(record.time - std::min(record.time, record.values[5]));
      event.tags = 0;  // they are of who tells it
    }
    return Next::record;
  }
}

std::optional<std::vector<std::int64_t>> memory_starts(const Source& source,
                                                       const Timeline& timeline) {
  std::vector<std::int64_t> starts;
  Cursor cursor(source, Select::metadata);
  format::Record record;
  for (;;) {
    const Next next = cursor.next(record);
    if (next == Next::aborted) return std::nullopt;
    if (next == Next::end) break;
    if (record.code == format::MemoryOn::kKind.code && starts.size() < kMostStarts) {
      starts.push_back(timeline.at(record.time));
    }
  }
  std::sort(starts.begin(), starts.end());
  return starts;
}

}  // namespace whence::read
