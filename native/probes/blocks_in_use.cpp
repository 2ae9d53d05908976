// blocks_in_use.cpp: see blocks_in_use.h.
#include "probes/blocks_in_use.h"

#include <cstring>

#include "base/pages.h"

namespace whence::probes {

namespace {

constinit BlocksInUse the_blocks;

}  // namespace

BlocksInUse& blocks_in_use() noexcept {
  return the_blocks;
}

// Where it is, or where it would be put.
std::size_t BlockTable::place_of(std::uint64_t address) const noexcept {
  std::size_t at = home_of(address);
  while (blocks_[at].address != 0 && blocks_[at].address != address) at = (at + 1) & (room_ - 1);
  return at;
}

bool BlockTable::grow() noexcept {
  const std::size_t room = room_ != 0 ? 2 * room_ : kFirstRoom;
  auto* larger = static_cast<BlockInUse*>(base::map_pages(room * sizeof(BlockInUse)));
  if (larger == nullptr) return false;
  BlockInUse* const before = blocks_;
  const std::size_t room_before = room_;
  blocks_ = larger;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // a fork finds less room than there is
  room_ = room;
  for (std::size_t at = 0; at < room_before; ++at) {
    if (before[at].address != 0) blocks_[place_of(before[at].address)] = before[at];
  }
  if (before != nullptr) base::unmap_pages(before, room_before * sizeof(BlockInUse));
  return true;
}

bool BlockTable::put(const BlockInUse& block) noexcept {
  if (3 * (count_ + 1) > 2 * room_ && !grow()) return false;
  BlockInUse& place = blocks_[place_of(block.address)];
  count_ += place.address == 0;
  place = block;
  return true;
}

std::optional<BlockInUse> BlockTable::take(std::uint64_t address) noexcept {
  if (count_ == 0) return std::nullopt;
  std::size_t hole = place_of(address);
  const BlockInUse found = blocks_[hole];
  if (found.address == 0) return std::nullopt;
  const std::size_t last = room_ - 1;
  for (std::size_t at = (hole + 1) & last; blocks_[at].address != 0; at = (at + 1) & last) {
    const std::size_t home = home_of(blocks_[at].address);
    if (((at - home) & last) < ((at - hole) & last)) continue;  // it would be before its home
    blocks_[hole] = blocks_[at];
    hole = at;
  }
  blocks_[hole] = {};
  --count_;
  return found;
}

std::optional<BlockInUse> BlockTable::find(std::uint64_t address) const noexcept {
  if (count_ == 0) return std::nullopt;
  const BlockInUse& found = blocks_[place_of(address)];
  return found.address != 0 ? std::optional(found) : std::nullopt;
}

std::optional<BlockTable> BlockTable::copy() const noexcept {
  BlockTable same;
  if (count_ == 0) return same;
  const std::size_t bytes = room_ * sizeof(BlockInUse);
  same.blocks_ = static_cast<BlockInUse*>(base::map_pages(bytes));
  if (same.blocks_ == nullptr) return std::nullopt;
  std::memcpy(same.blocks_, blocks_, bytes);
  same.room_ = room_;
  same.count_ = count_;
  return same;
}

// A forked child that finds this half done must not give the pages back again.
void BlockTable::clear() noexcept {
  BlockInUse* const blocks = blocks_;
  const std::size_t room = room_;
  *this = {};
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (blocks != nullptr) base::unmap_pages(blocks, room * sizeof(BlockInUse));
}

void BlocksInUse::begin(std::uint32_t recording) noexcept {
  clear();
  recording_.store(recording, std::memory_order_relaxed);
}

// Whether it comes late is asked under the lock that clear() takes after it has said so.
bool BlocksInUse::put(std::uint32_t recording, const BlockInUse& block) noexcept {
  const bool mapping = block.domain == static_cast<std::uint32_t>(format::Domain::mmap);
  if (mapping) unmap(block.time, block.address, block.size);
  Part& part = part_of(block.address, mapping);
  const base::Holding holding(part.lock);
  if (recording_.load(std::memory_order_relaxed) != recording) return true;
  return part.table.put(block);
}

std::optional<BlockInUse> BlocksInUse::take(std::uint64_t address) noexcept {
  Part& part = part_of(address);
  const base::Holding holding(part.lock);
  return part.table.take(address);
}

// What is left of one at either side stays as it was. Each turn takes one out, or none.
void BlocksInUse::unmap(std::uint64_t since, std::uint64_t first, std::uint64_t size) noexcept {
  if (size == 0) return;
  Part& part = part_of(0, true);
  const base::Holding holding(part.lock);
  const std::uint64_t end = first + size;
  for (;;) {
    std::uint64_t address = 0;
    part.table.for_each([&](const BlockInUse& block) {
      const bool there = block.address < end && first < block.address + block.size;
      if (there && block.time <= since) address = block.address;
    });
    if (address == 0) return;
    const BlockInUse block = *part.table.take(address);
    const auto keep = [&](std::uint64_t begin, std::uint64_t until) {
      BlockInUse rest = block;
      rest.address = begin;
      rest.size = until - begin;
      static_cast<void>(part.table.put(rest));  // one place has just become free
    };
    if (block.address < first) keep(block.address, first);
    if (end < block.address + block.size) keep(end, block.address + block.size);
  }
}

std::optional<BlockInUse> BlocksInUse::find(std::uint64_t address) noexcept {
  {
    Part& part = part_of(address);
    const base::Holding holding(part.lock);
    if (const auto found = part.table.find(address)) return found;
  }
  Part& mappings = part_of(0, true);
  const base::Holding holding(mappings.lock);
  std::optional<BlockInUse> found;
  mappings.table.for_each([&](const BlockInUse& block) {
    if (block.covers(address)) found = block;
  });
  return found;
}

void BlocksInUse::clear() noexcept {
  recording_.store(0, std::memory_order_relaxed);
  for (Part& part : parts_) {
    const base::Holding holding(part.lock);
    part.table.clear();
  }
}

std::size_t BlocksInUse::size() noexcept {
  std::size_t count = 0;
  for (Part& part : parts_) {
    const base::Holding holding(part.lock);
    count += part.table.size();
  }
  return count;
}

std::optional<BlockTable> BlocksInUse::copy_of(Part& part) noexcept {
  const base::Holding holding(part.lock);
  return part.table.copy();
}

void BlocksInUse::reset_locks() noexcept {
  for (Part& part : parts_) part.lock.reset();
}

}  // namespace whence::probes
