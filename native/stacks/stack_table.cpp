// stack_table.cpp: see stack_table.h.
#include "stacks/stack_table.h"

#include <algorithm>

#include "base/hash.h"

namespace whence::stacks {
namespace {

constexpr std::uint32_t kMostNodes = 1u << 30;  // ids have 31 bits, the index 2^31 places

std::uint64_t hash_of(const Node& key) noexcept {
  const auto upper = (std::uint64_t{key.parent} << 32) | key.code;
  return base::mix(upper, static_cast<std::uint32_t>(key.offset));
}

bool same_frame(const Node& a, const Node& b) noexcept {
  return a.parent == b.parent && a.code == b.code && a.offset == b.offset;
}

}  // namespace

StackId StackTable::find(StackId parent, CodeId code, std::int32_t offset) const noexcept {
  const StackId id = find_node({parent, code, offset, 0});
  if (id == kEmpty) return kEmpty;
  const std::uint32_t depth = nodes_.at(id)->depth;
  return (depth & kAlias) != 0 ? depth & ~kAlias : id;
}

StackId StackTable::intern(StackId parent, CodeId code, std::int32_t offset,
                           std::uint32_t frames) noexcept {
  if (is_truncated(parent)) return parent;
  if (const StackId id = find(parent, code, offset)) return id;
  const base::Holding holding(lock_);
  if (const StackId id = find(parent, code, offset)) return id;
  if (const StackId id = add({parent, code, offset, depth(parent) + frames})) return id;
  count_truncated();
  return parent | kTruncated;
}

void StackTable::add_alias(StackId parent, CodeId code, std::int32_t offset,
                           StackId target) noexcept {
  if (is_truncated(target)) return;
  const base::Holding holding(lock_);
  if (find(parent, code, offset) == kEmpty) (void)add({parent, code, offset, target | kAlias});
}

StackId StackTable::find_node(const Node& key) const noexcept {
  return index_.find(hash_of(key), [&](StackId id) { return same_frame(*nodes_.at(id), key); });
}

StackId StackTable::add(const Node& node) noexcept {
  const StackId id = last_.load(std::memory_order_relaxed) + 1;
  Node* place = id <= cap_.load(std::memory_order_relaxed) ? nodes_.ensure(id) : nullptr;
  if (place == nullptr) return kEmpty;
  *place = node;
  last_.store(id, std::memory_order_release);  // before it can be found, as in BytePool::keep
  const auto hash_of_id = [&](StackId other) { return hash_of(*nodes_.at(other)); };
  if (index_.insert(hash_of(node), id, hash_of_id)) return id;
  last_.store(id - 1, std::memory_order_release);
  return kEmpty;
}

bool StackTable::contains(StackId id) const noexcept {
  const StackId whole = whole_part(id);
  return whole == kEmpty || (whole <= last_.load(std::memory_order_acquire) &&
                             (nodes_.at(whole)->depth & kAlias) == 0);
}

std::uint32_t StackTable::depth(StackId id) const noexcept {
  const StackId whole = whole_part(id);
  return (whole == kEmpty ? 0 : node(whole).depth) + (is_truncated(id) ? 1 : 0);
}

void StackTable::set_cap(std::uint32_t cap) noexcept {
  cap_.store(std::min(cap, kMostNodes), std::memory_order_relaxed);
}

StackTable::Statistics StackTable::statistics() const noexcept {
  return {last_.load(std::memory_order_acquire), cap_.load(std::memory_order_relaxed),
          truncated_.load(std::memory_order_relaxed), nodes_.bytes() + index_.bytes()};
}

}  // namespace whence::stacks
