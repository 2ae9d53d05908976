// blocks_in_use.h: the blocks of memory that are in use now, for recordings that keep no history.
//
// Threads: any, with the GIL or without, inside an allocator. Each of the parts has a lock of its
// own (rank `blocks`), so that threads seldom meet.
// Allocates: pages by mmap, 32 bytes a block, a quarter to two thirds full.
// Fails by: false from put(), which the caller counts.
//
// What a forked child finds may be half done: it can be cleared, and nothing else.
//
// Blocks are looked up by address, by open addressing: what is taken out leaves no mark, those
// behind it move up. Mappings have a part to themselves: they are few, and go by ranges.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/hash.h"
#include "base/lock.h"
#include "format/records/memory.h"

namespace whence::probes {

struct BlockInUse {
  std::uint64_t address = 0;  // 0: there is none
  std::uint64_t size = 0;
  std::uint64_t time = 0;  // ticks: when it was taken
  std::uint32_t stack = 0;
  std::uint32_t thread : 29 = 0;  // its number in the recording
  std::uint32_t domain : 3 = 0;   // a format::Domain

  [[nodiscard]] bool covers(std::uint64_t wanted) const noexcept {
    return wanted == address || wanted - address < size;
  }
};
static_assert(sizeof(BlockInUse) == 32);

// One part of them.
class BlockTable {
 public:
  // In place of what there is at that address.
  [[nodiscard]] bool put(const BlockInUse& block) noexcept;
  std::optional<BlockInUse> take(std::uint64_t address) noexcept;
  [[nodiscard]] std::optional<BlockInUse> find(std::uint64_t address) const noexcept;
  // Another table with the same blocks; nothing if there is no room for it.
  [[nodiscard]] std::optional<BlockTable> copy() const noexcept;
  // Gives all pages back.
  void clear() noexcept;

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t at = 0; at < room_; ++at) {
      if (blocks_[at].address != 0) visit(blocks_[at]);
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  static constexpr std::size_t kFirstRoom = 128;  // one page

  [[nodiscard]] std::size_t home_of(std::uint64_t address) const noexcept {
    return base::mix(address, 0) & (room_ - 1);
  }
  [[nodiscard]] std::size_t place_of(std::uint64_t address) const noexcept;
  [[nodiscard]] bool grow() noexcept;

  BlockInUse* blocks_ = nullptr;
  std::size_t room_ = 0;  // a power of two, or 0
  std::size_t count_ = 0;
};

class BlocksInUse {
 public:
  // Nothing is in use, of this recording.
  void begin(std::uint32_t recording) noexcept;
  // What comes late, of a recording that is over, is passed over.
  [[nodiscard]] bool put(std::uint32_t recording, const BlockInUse& block) noexcept;
  // Of one that is not there, nothing is known.
  std::optional<BlockInUse> take(std::uint64_t address) noexcept;
  // Takes away what has been in that range since that time or longer, of mappings only.
  void unmap(std::uint64_t since, std::uint64_t first, std::uint64_t size) noexcept;
  // The one that begins there, or the mapping that it is in.
  [[nodiscard]] std::optional<BlockInUse> find(std::uint64_t address) noexcept;
  // Ends what begin() began.
  void clear() noexcept;
  [[nodiscard]] std::size_t size() noexcept;

  // Part by part, each as it is at a moment. Under no lock: `visit` may take any. How many were
  // left out because there was no room for a copy of their part.
  template <class Visit>
  [[nodiscard]] std::size_t for_each(Visit&& visit) {
    std::size_t left_out = 0;
    for (Part& part : parts_) {
      std::optional<BlockTable> copy = copy_of(part);
      if (copy.has_value()) {
        copy->for_each(visit);
        copy->clear();
      } else {
        const base::Holding holding(part.lock);
        left_out += part.table.size();
      }
    }
    return left_out;
  }

  // In a forked child: nobody holds them.
  void reset_locks() noexcept;

 private:
  struct alignas(64) Part {
    base::Lock lock{base::Rank::blocks};
    BlockTable table;
  };
  static constexpr std::size_t kParts = 64;

  [[nodiscard]] static std::optional<BlockTable> copy_of(Part& part) noexcept;
  [[nodiscard]] Part& part_of(std::uint64_t address, bool mapping = false) noexcept {
    return parts_[mapping ? kParts : (base::mix(address, 1) >> 32) % kParts];
  }

  std::array<Part, kParts + 1> parts_;        // the last has the mappings
  std::atomic<std::uint32_t> recording_ = 0;  // whose blocks these are; 0: nobody's
};

BlocksInUse& blocks_in_use() noexcept;

}  // namespace whence::probes
