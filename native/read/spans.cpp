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
  const auto& v = record.values;
  switch (record.code) {
    case format::SpanTags::kKind.code: keep_tags(record); return false;
    case format::SpanBegin::kKind.code: begin(record); return false;
    case format::SpanEnd::kKind.code:
    case format::SpanError::kKind.code:
      end({record.thread, v[1]}, v[2], v[0], v[3], span);
      span.error = record.code == format::SpanError::kKind.code;
      return true;
    case format::SpanEndAway::kKind.code: {
      const Key key{static_cast<std::uint32_t>(v[1]), v[2]};
      const auto found = open_.find(key);
      const bool begun = found != open_.end() && found->second.begun;
      end(key, v[3], v[0], v[4], span);
      span.error = v[5] != 0;
      if (begun) return true;
      if (Open* open = remember(key)) open->ended = true;
      return true;
    }
    default: return false;
  }
}

void SpanReader::begin(const format::Record& record) {
  const Key key{record.thread, record.values[1]};
  Open* open = remember(key);
  if (open == nullptr) return;
  open->start_ticks = record.values[0];
  open->name = record.values[2];
  open->begun = true;
}

void SpanReader::keep_tags(const format::Record& record) {
  const std::size_t size = record.bytes.size();
  if (kept_bytes_ + size > kMostTagBytesKept) return;
  Open* open = remember({record.thread, record.values[0]});
  if (open == nullptr) return;
  kept_bytes_ += size - open->tags.size();
  open->tags.assign(record.bytes.begin(), record.bytes.end());
}

void SpanReader::end(Key key, std::uint64_t name, std::uint64_t end, std::uint64_t duration,
                     Span& span) {
  span = {name, key.thread, end - std::min(duration, end), end, false, false, {}};
  const auto found = open_.find(key);
  if (found == open_.end()) return;
  span.tags = found->second.tags;
  kept_bytes_ -= span.tags.size();
  open_.erase(found);
}

SpanReader::Open* SpanReader::remember(Key key) {
  const auto found = open_.find(key);
  if (found != open_.end()) return &found->second;
  if (open_.size() >= kMostOpen) return nullptr;
  return &open_.try_emplace(key).first->second;
}

}  // namespace whence::read
