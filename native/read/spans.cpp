// spans.cpp: see spans.h.
#include "read/spans.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "format/records/span.h"

namespace whence::read {
namespace {

// Real programs have some hundreds of spans open. Begins beyond this are not remembered: their
// ends still make whole spans, without tags from the begin.
constexpr std::size_t kMostOpen = 100'000;
constexpr std::size_t kMostTagBytesKept = 8u << 20;

}  // namespace

std::size_t SpanReader::Hash::operator()(const Key& key) const noexcept {
  return static_cast<std::size_t>(
      (key.number + (std::uint64_t{key.thread} << 40)) * 0x9E3779B97F4A7C15u >> 7);
}

Next SpanReader::next(Span& span) {
  while (!all_read_) {
    format::Record record;
    const Next next = cursor_.next(record);
    if (next == Next::aborted) return next;
    if (next == Next::record) {
      if (take(record, span)) return Next::record;
      continue;
    }
    all_read_ = true;
    settle_tags();
    for (auto& entry : open_) {
      if (entry.second.begun && !entry.second.ended) left_.push_back(std::move(entry));
    }
    open_.clear();
    std::sort(left_.begin(), left_.end(), [](const auto& a, const auto& b) {
      const auto key = [](const auto& item) {
        return std::tuple(item.second.start_ticks, item.first.thread, item.first.number);
      };
      return key(a) > key(b);
    });
  }
  return next_open(span) ? Next::record : Next::end;
}

bool SpanReader::next_open(Span& span) {
  if (left_.empty()) return false;
  auto& [key, open] = left_.back();
  span = {open.name, key.thread, open.start_ticks, 0, false, true, std::move(open.tags)};
  left_.pop_back();
  return true;
}

// Whether a span is whole with this record.
bool SpanReader::take(const format::Record& record, Span& span) {
  if (cursor_.place() != place_) {
    settle_tags();
    has_begun_ = false;
    place_ = cursor_.place();
  }
  const auto& v = record.values;
  switch (record.code) {
    case format::SpanTags::kKind.code: keep_tags(record); return false;
    case format::SpanBegin::kKind.code: begin(record); return false;
    case format::SpanEnd::kKind.code:
    case format::SpanError::kKind.code:
      end({record.thread, v[1]}, v[2], v[0], v[3], record.code == format::SpanError::kKind.code,
          false, span);
      return true;
    case format::SpanEndAway::kKind.code:
      end({static_cast<std::uint32_t>(v[1]), v[2]}, v[3], v[0], v[4], v[5] != 0, true, span);
      return true;
    default:
      settle_tags();
      has_begun_ = false;
      return false;
  }
}

void SpanReader::begin(const format::Record& record) {
  settle_tags();
  const Key key{record.thread, record.values[1]};
  just_begun_ = key;
  has_begun_ = true;
  const auto found = open_.find(key);
  if (found != open_.end() && found->second.ended) {
    forget(key);
    has_begun_ = false;
    return;
  }
  if (Open* open = remember(key)) {
    open->start_ticks = record.values[0];
    open->name = record.values[2];
    open->begun = true;
  }
}

// Tags stand right after their begin, or right before their end. The end may be that of another
// thread's span with the same number, so the latter wait for the next record.
void SpanReader::keep_tags(const format::Record& record) {
  settle_tags();
  const std::uint64_t number = record.values[0];
  loose_tags_.assign(record.bytes.begin(), record.bytes.end());
  loose_key_ = {record.thread, number};
  has_loose_ = true;
  if (has_begun_ && just_begun_ == loose_key_) settle_tags();
  has_begun_ = false;
}

// Gives tags that wait to the span of this thread with their number.
void SpanReader::settle_tags() {
  if (!std::exchange(has_loose_, false)) return;
  if (kept_bytes_ + loose_tags_.size() > kMostTagBytesKept) return;
  Open* open = remember(loose_key_);
  if (open == nullptr) return;
  kept_bytes_ += loose_tags_.size() - open->tags.size();
  open->tags = loose_tags_;
}

void SpanReader::end(Key key, std::uint64_t name, std::uint64_t end, std::uint64_t duration,
                     bool error, bool away, Span& span) {
  has_begun_ = false;
  span = {name, key.thread, end - std::min(duration, end), end, error, false, {}};
  const bool own_tags = has_loose_ && loose_key_.number == key.number;
  if (!own_tags) settle_tags();
  has_loose_ = false;
  const auto found = open_.find(key);
  if (found != open_.end()) span.tags = found->second.tags;
  if (own_tags) span.tags = loose_tags_;
  const bool begun = found != open_.end() && found->second.begun;
  forget(key);
  if (!away || begun) return;
  if (Open* open = remember(key)) open->ended = true;
}

SpanReader::Open* SpanReader::remember(Key key) {
  const auto found = open_.find(key);
  if (found != open_.end()) return &found->second;
  if (open_.size() >= kMostOpen) return nullptr;
  return &open_.try_emplace(key).first->second;
}

void SpanReader::forget(Key key) {
  const auto found = open_.find(key);
  if (found == open_.end()) return;
  kept_bytes_ -= found->second.tags.size();
  open_.erase(found);
}

}  // namespace whence::read
