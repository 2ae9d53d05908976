// byte_pool.cpp: see byte_pool.h.
#include "base/byte_pool.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/pages.h"

namespace whence::base {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;
constexpr std::uint32_t kFirstIndex = 1024;

}  // namespace

BytePool::Ref BytePool::intern(std::span<const std::uint8_t> bytes) noexcept {
  const Holding holding(lock_);
  std::uint8_t* data = reserve(bytes.size());
  if (data == nullptr) return kNone;
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return keep(data, bytes.size());
}

BytePool::Ref BytePool::intern(UnicodeView text) noexcept {
  const Holding holding(lock_);
  const std::size_t size = utf8_size(text);
  std::uint8_t* data = reserve(size);
  if (data == nullptr) return kNone;
  write_utf8(text, data);
  return keep(data, size);
}

std::uint8_t* BytePool::reserve(std::size_t size) noexcept {
  if (block_ == nullptr || size > block_left_) {
    const std::size_t bytes = std::max(kBlock, (size + 4095) & ~std::size_t{4095});
    auto* block = static_cast<std::uint8_t*>(map_pages(bytes));
    if (block == nullptr) return nullptr;
    mapped_.fetch_add(bytes, std::memory_order_relaxed);
    block_ = block;
    block_left_ = bytes;
  }
  return block_;
}

BytePool::Ref BytePool::keep(std::uint8_t* data, std::size_t size) noexcept {
  if (count_ >= index_size_ / 2 && !grow_index()) return kNone;
  const std::uint64_t hash = hash_bytes(data, size);
  std::uint32_t place = static_cast<std::uint32_t>(hash) & (index_size_ - 1);
  for (; index_[place] != 0; place = (place + 1) & (index_size_ - 1)) {
    const Item* item = items_.at(index_[place] - 1);
    if (item->hash == hash && item->size == size && std::memcmp(item->data, data, size) == 0) {
      return index_[place] - 1;
    }
  }
  Item* item = items_.ensure(count_);
  if (item == nullptr) return kNone;
  *item = {data, size, hash};
  block_ += size;
  block_left_ -= size;
  index_[place] = count_ + 1;
  return count_++;
}

bool BytePool::grow_index() noexcept {
  const std::uint32_t size = index_size_ == 0 ? kFirstIndex : index_size_ * 2;
  auto* index = static_cast<Ref*>(map_pages(size * sizeof(Ref)));
  if (index == nullptr) return false;
  for (std::uint32_t ref = 0; ref < count_; ++ref) {
    std::uint32_t place = static_cast<std::uint32_t>(items_.at(ref)->hash) & (size - 1);
    while (index[place] != 0) place = (place + 1) & (size - 1);
    index[place] = ref + 1;
  }
  unmap_pages(index_, index_size_ * sizeof(Ref));
  mapped_.fetch_add((size - index_size_) * sizeof(Ref), std::memory_order_relaxed);
  index_ = index;
  index_size_ = size;
  return true;
}

}  // namespace whence::base
