// memory_blocks.cpp: see memory_blocks.h.
#include "read/memory_blocks.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace whence::read {
namespace {

using Action = MemoryEvent::Action;
using What = Change::What;

}  // namespace

BlockRow MemoryBlocks::row_of(const Block& block, std::int64_t end) const noexcept {
  const Origin& origin = replay().origins()[block.origin];
  return {block.time, end, block.address, block.size, origin.domain, origin.stack, origin.thread};
}

// nullptr: it has none.
MemoryBlocks::Ended* MemoryBlocks::ended_by(std::uint32_t thread) {
  if (thread_ == nullptr || thread != thread_id_) {
    const auto found = ended_.find(thread);
    if (found == ended_.end()) return nullptr;
    thread_ = &found->second;
    thread_id_ = thread;
  }
  return thread_;
}

void MemoryBlocks::keep_ended(std::uint32_t thread, const BlockRow& made) {
  Ended* ended = ended_by(thread);
  if (ended == nullptr) {
    if (!afford(kEntryCost)) return row(made);
    ended = &ended_[thread];
  }
  *ended = made;
}

void MemoryBlocks::end_cut() {
  if (cut_.has_value()) row(*cut_);
  cut_.reset();
}

bool MemoryBlocks::take(const Change& change) {
  const MemoryEvent& event = change.event;
  if (change.is_rest) {
    if (cut_.has_value()) cut_->size -= change.block.size;
    return true;
  }
  end_cut();
  if (event.action == Action::freed) {
    Ended* before = ended_by(event.thread);
    if (before != nullptr && before->has_value()) {
      row(**before);
      before->reset();
    }
  }
  if (!change.of_block() || !is_wanted(change.block)) return true;
  if (change.what == What::returned) {
    if (Ended* ended = ended_by(event.thread)) ended->reset();
  } else if (change.what == What::ended) {
    const BlockRow made = row_of(change.block, event.time);
    if (event.is_mapping()) {
      cut_ = made;
    } else if (event.action == Action::freed) {
      keep_ended(event.thread, made);
    } else {  // its place was taken: that is all that is known of its end
      row(made);
    }
  }
  return true;
}

void MemoryBlocks::finish() {
  end_cut();
  std::vector<BlockRow> rest;
  for (const auto& [thread, ended] : ended_) {
    if (ended.has_value()) rest.push_back(*ended);
  }
  replay().for_each_live([&](const Block& block) {
    if (is_wanted(block)) rest.push_back(row_of(block, kNeverEnds));
  });
  // The order of tables is another one each time.
  std::sort(rest.begin(), rest.end(), [](const BlockRow& a, const BlockRow& b) {
    return std::tie(a.start, a.address, a.domain, a.end) <
           std::tie(b.start, b.address, b.domain, b.end);
  });
  for (const BlockRow& each : rest) row(each);
}

}  // namespace whence::read
