// stack_table.cpp: see stack_table.h.
#include "stacks/stack_table.h"

#include <algorithm>

#include "base/hash.h"
#include "base/pages.h"

namespace whence::stacks {

// Open addressing, at most half full. When it fills, one of twice the size takes over; readers may
// go on with the old one, which is never unmapped (all old ones together are smaller than the new
// one). What they miss there they find under the lock.
struct StackTable::Index {
  std::uint32_t size;  // a power of two
  std::atomic<StackId> slots[1];

  static std::size_t bytes_for(std::uint32_t size) noexcept {
    return sizeof(Index) + size * sizeof(std::atomic<StackId>);
  }
  [[nodiscard]] std::uint32_t home(std::uint64_t hash) const noexcept {
    return static_cast<std::uint32_t>(hash) & (size - 1);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t place) const noexcept {
    return (place + 1) & (size - 1);
  }
  void insert(std::uint64_t hash, StackId id) noexcept {
    std::uint32_t place = home(hash);
    while (slots[place].load(std::memory_order_relaxed) != 0) place = next(place);
    slots[place].store(id, std::memory_order_release);
  }
};

namespace {

constexpr std::uint32_t kFirstIndex = 1 << 13;
constexpr std::uint32_t kMostNodes = kTruncated - 1;

std::uint64_t hash_of(const Node& key) noexcept {
  const auto upper = (std::uint64_t{key.parent} << 32) | key.code;
  return base::mix(upper, static_cast<std::uint32_t>(key.offset));
}

bool same(const Node& a, const Node& b) noexcept {
  return a.parent == b.parent && a.code == b.code && a.offset == b.offset;
}

}  // namespace

StackId StackTable::intern(StackId parent, CodeId code, std::int32_t offset) noexcept {
  if (is_truncated(parent)) return parent;
  const Node key{parent, code, offset, 0};
  const std::uint64_t hash = hash_of(key);
  const Index* index = index_.load(std::memory_order_acquire);
  const StackId found = index != nullptr ? find(index, hash, key) : kEmpty;
  return found != kEmpty ? found : add(hash, key);
}

StackId StackTable::find(const Index* index, std::uint64_t hash, const Node& key) const noexcept {
  for (std::uint32_t place = index->home(hash);; place = index->next(place)) {
    const StackId id = index->slots[place].load(std::memory_order_acquire);
    if (id == kEmpty || same(*nodes_.at(id), key)) return id;
  }
}

StackId StackTable::add(std::uint64_t hash, const Node& key) noexcept {
  const base::Holding holding(lock_);
  if (Index* index = roomy_index()) {
    if (const StackId id = find(index, hash, key)) return id;
    const std::uint32_t id = last_.load(std::memory_order_relaxed) + 1;
    Node* node = id <= cap_.load(std::memory_order_relaxed) ? nodes_.ensure(id) : nullptr;
    if (node != nullptr) {
      *node = key;
      node->depth = depth(key.parent) + 1;
      index->insert(hash, id);
      last_.store(id, std::memory_order_release);
      return id;
    }
  }
  count_truncated();
  return key.parent | kTruncated;
}

// The index, replaced by a larger one first if one more entry would make it more than half full.
StackTable::Index* StackTable::roomy_index() noexcept {
  Index* index = index_.load(std::memory_order_relaxed);
  const std::uint32_t last = last_.load(std::memory_order_relaxed);
  if (index != nullptr && last < index->size / 2) return index;
  const std::uint32_t size = index == nullptr ? kFirstIndex : index->size * 2;
  const std::size_t bytes = Index::bytes_for(size);
  auto* larger = static_cast<Index*>(base::map_pages(bytes));
  if (larger == nullptr) return last + 1 < (index ? index->size : 0) ? index : nullptr;
  larger->size = size;
  for (StackId id = 1; id <= last; ++id) larger->insert(hash_of(node(id)), id);
  index_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  index_.store(larger, std::memory_order_release);
  return larger;
}

bool StackTable::contains(StackId id) const noexcept {
  return whole_part(id) <= last_.load(std::memory_order_acquire);
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
          truncated_.load(std::memory_order_relaxed),
          nodes_.bytes() + index_bytes_.load(std::memory_order_relaxed)};
}

}  // namespace whence::stacks
