// live_blocks.h: the blocks of memory that are in use, by where they are.
//
// Threads: a table belongs to one. Allocates: 40 bytes a block, at most two thirds full, up to a
// budget. Fails by: false from insert(), which leaves it as it was; std::bad_alloc.
//
// Open addressing: what is looked for is next to where it should be. Blocks come and go by the
// million, so what is taken out leaves no mark: those behind it move up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "read/budget.h"

namespace whence::read {

struct Block {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::int64_t time = 0;     // when it was taken, in nanoseconds
  std::uint64_t serial = 0;  // it was so many blocks that its thread had taken then
  std::uint32_t origin = 0;  // see origins.h
  std::uint32_t space = 0;   // 0: there is none; of addresses, see replay.cpp

  // Is this address in it? A block of no size has its own.
  [[nodiscard]] bool covers(std::uint64_t wanted) const noexcept {
    return wanted == address || wanted - address < size;
  }
};

class LiveBlocks {
 public:
  // The one that begins there, or nullptr. Good until something is put in or taken out.
  [[nodiscard]] const Block* find(std::uint32_t space, std::uint64_t address) const noexcept {
    if (count_ == 0) return nullptr;
    const Block& found = blocks_[place_of(space, address)];
    return found.space != 0 ? &found : nullptr;
  }
  // One where none begins.
  [[nodiscard]] bool insert(const Block& block, Budget& budget) {
    if (3 * (count_ + 1) > 2 * blocks_.size() && !grow(budget)) return false;
    blocks_[place_of(block.space, block.address)] = block;
    ++count_;
    return true;
  }
  // What find() has given.
  void erase(const Block* block) noexcept {
    const std::size_t last = blocks_.size() - 1;
    auto hole = static_cast<std::size_t>(block - blocks_.data());
    for (std::size_t at = (hole + 1) & last; blocks_[at].space != 0; at = (at + 1) & last) {
      const std::size_t home = home_of(blocks_[at].space, blocks_[at].address);
      if (((at - home) & last) < ((at - hole) & last)) continue;  // it would be before its home
      blocks_[hole] = blocks_[at];
      hole = at;
    }
    blocks_[hole] = {};
    --count_;
  }
  template <class Take>
  void for_each(Take&& take) const {
    for (const Block& block : blocks_) {
      if (block.space != 0) take(block);
    }
  }
  // Takes all out. What looks at all blocks looks at all room that there is, so that goes, too.
  void clear(Budget& budget) noexcept {
    budget.give_back(blocks_.size() * sizeof(Block));
    std::vector<Block>().swap(blocks_);
    count_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  static constexpr std::size_t kFirstSize = 1 << 4;

  [[nodiscard]] std::size_t home_of(std::uint32_t space, std::uint64_t address) const noexcept {
    // Where this program is in memory is not for a file to know: it cannot choose what collides.
    static constexpr char kSomewhere = 0;
    const auto seed = reinterpret_cast<std::uintptr_t>(&kSomewhere) + space;
    return base::mix(seed, address) & (blocks_.size() - 1);
  }
  // Where it is, or where it would be put.
  [[nodiscard]] std::size_t place_of(std::uint32_t space, std::uint64_t address) const noexcept {
    std::size_t at = home_of(space, address);
    while (blocks_[at].space != 0 &&
           (blocks_[at].address != address || blocks_[at].space != space)) {
      at = (at + 1) & (blocks_.size() - 1);
    }
    return at;
  }
  [[nodiscard]] bool grow(Budget& budget) {
    const std::size_t size = blocks_.empty() ? kFirstSize : 2 * blocks_.size();
    if (!budget.afford((size - blocks_.size()) * sizeof(Block))) return false;
    std::vector<Block> before(size);
    before.swap(blocks_);
    for (const Block& block : before) {
      if (block.space != 0) blocks_[place_of(block.space, block.address)] = block;
    }
    return true;
  }

  std::vector<Block> blocks_;  // a power of two, or none
  std::size_t count_ = 0;
};

}  // namespace whence::read
