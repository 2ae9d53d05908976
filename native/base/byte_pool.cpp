// byte_pool.cpp: see byte_pool.h.
#include "base/byte_pool.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/pages.h"

namespace whence::base {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;

}  // namespace

constinit BytePool detail::the_names;

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

std::uint32_t BytePool::look_up(const std::uint8_t* data, std::size_t size,
                                std::uint64_t hash) const noexcept {
  return index_.find(hash, [&](std::uint32_t id) {
    const Item* item = items_.at(id - 1);
    return item->hash == hash && item->size == size && std::memcmp(item->data, data, size) == 0;
  });
}

BytePool::Ref BytePool::find(std::span<const std::uint8_t> bytes) const noexcept {
  const std::uint32_t found =
      look_up(bytes.data(), bytes.size(), hash_bytes(bytes.data(), bytes.size()));
  return found != 0 ? found - 1 : kNone;
}

BytePool::Ref BytePool::keep(std::uint8_t* data, std::size_t size) noexcept {
  const std::uint64_t hash = hash_bytes(data, size);
  const std::uint32_t found = look_up(data, size, hash);
  if (found != 0) return found - 1;
  Item* item = items_.ensure(count_);
  if (item == nullptr) return kNone;
  *item = {data, size, hash};
  // The number is taken before it can be found: a forked child may go on from between the two.
  const Ref ref = count_++;
  block_ += size;
  block_left_ -= size;
  const auto hash_of = [&](std::uint32_t id) { return items_.at(id - 1)->hash; };
  if (index_.insert(hash, ref + 1, hash_of)) return ref;
  --count_;
  block_ -= size;
  block_left_ += size;
  return kNone;
}

}  // namespace whence::base
