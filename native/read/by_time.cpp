// by_time.cpp: see by_time.h.
#include "read/by_time.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"

namespace whence::read {
namespace {

constexpr std::size_t kMostBytes = 512u << 20;
constexpr std::size_t kFewestOpen = 16;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

}  // namespace

ByTime::ByTime(const Source& source, std::uint64_t deadline)
    : source_(source),
      loader_(source),
      deadline_(deadline),
      most_open_(std::max(kFewestOpen, kMostBytes / source.header().chunk_size)) {
  const auto& entries = source.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (is_selected(entries[i], Select::events)) order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    return Place{entries[a].start_ticks, a} < Place{entries[b].start_ticks, b};
  });
}

// Times of a chunk that go back (they have run over, in a file that lies) stay where they are.
bool ByTime::step(OpenChunk& chunk) noexcept {
  if (chunk.decoder.next(chunk.record) != format::Step::record) return false;
  chunk.place.time = std::max(chunk.place.time, chunk.record.time);
  return true;
}

void ByTime::wait(std::unique_ptr<OpenChunk> chunk) {
  waiting_.push_back(std::move(chunk));
  std::push_heap(waiting_.begin(), waiting_.end(),
                 [](const auto& a, const auto& b) { return b->place < a->place; });
}

// May the next chunk have something that comes before all that is waiting?
bool ByTime::is_due() const noexcept {
  if (next_ == order_.size() || waiting_.size() >= most_open_) return false;
  return waiting_.empty() ||
         source_.entries()[order_[next_]].start_ticks <= waiting_.front()->place.time;
}

ByTime::Due ByTime::open_due() {
  while (is_due()) {
    const Entry& entry = source_.entries()[order_[next_]];
    if (deadline_ != kNoDeadline && base::nanoseconds(CLOCK_MONOTONIC) >= deadline_) {
      stopped_at_ = entry.start_ticks;
      return Due::stopped;
    }
    const std::size_t place = order_[next_++];
    Chunk chunk;
    const Loaded loaded = loader_.load(entry, chunk);
    if (loaded == Loaded::aborted) return Due::aborted;
    if (loaded != Loaded::good) continue;
    auto opened = std::make_unique<OpenChunk>(
        OpenChunk{loader_.take_payload(),
                  {chunk.payload, chunk.header.thread, chunk.header.start_ticks},
                  {},
                  {0, place}});
    if (step(*opened)) wait(std::move(opened));
  }
  return Due::opened;
}

void ByTime::yield(format::Record& record) noexcept {
  record = current_->record;
  record.time = current_->place.time;
  if (record.time < now_) {
    ++disorder_;
    record.time = now_;
  }
  now_ = record.time;
}

// Another chunk is first, or the current one is read.
Next ByTime::switch_chunk(format::Record& record) {
  if (stopped_at_.has_value()) return Next::end;
  switch (open_due()) {
    case Due::opened: break;
    case Due::stopped: return Next::end;
    case Due::aborted: return Next::aborted;
  }
  if (waiting_.empty()) return Next::end;
  std::pop_heap(waiting_.begin(), waiting_.end(),
                [](const auto& a, const auto& b) { return b->place < a->place; });
  current_ = std::move(waiting_.back());
  waiting_.pop_back();
  limit_ = {kNever, std::numeric_limits<std::size_t>::max()};
  if (!waiting_.empty()) limit_ = waiting_.front()->place;
  if (next_ != order_.size() && waiting_.size() + 1 < most_open_) {
    limit_ = std::min(limit_, Place{source_.entries()[order_[next_]].start_ticks, 0});
  }
  yield(record);
  return Next::record;
}

Next ByTime::next(format::Record& record) {
  if (current_ != nullptr) {
    if (!step(*current_)) {
      current_.reset();
    } else if (current_->place < limit_) {
      yield(record);
      return Next::record;
    } else {
      wait(std::move(current_));
    }
  }
  return switch_chunk(record);
}

}  // namespace whence::read
