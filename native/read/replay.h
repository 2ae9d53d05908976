// replay.h: which blocks of memory are in use, event by event.
//
// Threads: a replay belongs to one. Allocates: for blocks that are in use, threads and origins, up
// to a budget that goes with the size of the file; what does not fit is counted.
// Fails by: Next; std::bad_alloc.
//
// - A free of a block that was never seen is of one from before the recording.
// - A block that is taken where one is in use: the free of that one is told later, by another
//   thread, and the block has ended. Such a free within a millisecond is passed over. But if memory
//   was not recorded for a while since the block was taken, that is when it ended.
// - Mappings are given back by ranges of addresses: what is left of one is a block as that was.
// - A free that did not happen after all (a realloc that failed) brings the block back.
// - A state is all that is in use in the process: what an earlier one has told ends there.
// - Segments, which pools cut their blocks out of, come and go beside the blocks; one that is taken
//   where one is takes its place.
//
// Bytes are added up as numbers of 64 bits, and begin anew beyond: only a file that lies gets
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "read/id_map.h"
#include "read/live_blocks.h"
#include "read/mapped_ranges.h"
#include "read/memory_events.h"
#include "read/origins.h"

namespace whence::read {

struct MemoryCounts {
  std::uint64_t taken = 0, freed = 0;  // events; a block that moves is freed and taken
  std::uint64_t before = 0;            // frees of blocks from before the recording
  std::uint64_t contradictions = 0;
  std::uint64_t out_of_memory = 0;
};

// What one event does to one block.
struct Change {
  enum class What : std::uint8_t { taken, ended, returned, nothing };
  What what = What::nothing;
  bool of_segment = false;  // and not of a block
  bool is_rest = false;     // of a mapping of which the rest has gone
  MemoryEvent event{};
  Block block;                // that is taken, has ended or is back
  std::uint64_t further = 0;  // of one that ends or is back: blocks its thread has taken since
  std::int64_t ended = 0;     // of one that is back, and no rest: when it had ended

  [[nodiscard]] bool of_block() const noexcept { return what != What::nothing && !of_segment; }
};

class Replay {
 public:
  // Both outlive it. It ends before the first event that is not before `end`.
  Replay(const Source& source, const Timeline& timeline, std::int64_t end, std::uint64_t deadline);

  // Each event gives one change; one that takes a block where others are, or gives several back or
  // a part of one, gives a change for each.
  [[nodiscard]] Next next(Change& change);

  // Blocks in use, in no order.
  template <class Take>
  void for_each_live(Take&& take) const {
    own_.for_each(take);
    pooled_.for_each(take);
  }
  // Segments that pools hold, in no order.
  template <class Take>
  void for_each_segment(Take&& take) const {
    segments_.for_each(take);
  }
  [[nodiscard]] const Origins& origins() const noexcept { return origins_; }
  [[nodiscard]] const MemoryCounts& counts() const noexcept { return counts_; }
  // Is there room for what a query keeps of the file?
  [[nodiscard]] bool afford(std::uint64_t bytes) noexcept { return budget_.afford(bytes); }
  // Blocks, threads and origins for which there was no room.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return budget_.refused(); }
  [[nodiscard]] std::uint64_t disorder() const noexcept { return events_.disorder(); }
  [[nodiscard]] std::optional<std::int64_t> read_until() const noexcept {
    return events_.read_until();
  }

 private:
  enum class Last : std::uint8_t { none, block, before };
  struct Thread {
    std::uint64_t taken = 0;
    // The free before, until it is known to have happened.
    Last last = Last::none;
    Block block;
    std::uint64_t further = 0;
    std::int64_t ended = 0;
  };
  struct Where {
    std::uint32_t space;
    std::uint64_t address;
    bool operator==(const Where&) const = default;
  };
  struct WhereHash {
    std::size_t operator()(const Where& where) const noexcept {
      return IdHash()(where.address) + where.space;
    }
  };
  struct Late {
    std::int64_t time;
    std::uint32_t thread;
  };

  [[nodiscard]] Thread& thread(std::uint32_t id);
  [[nodiscard]] std::uint32_t space_of(std::uint64_t domain);
  [[nodiscard]] LiveBlocks& blocks_of(std::uint32_t space) noexcept;
  [[nodiscard]] std::uint32_t origin_of(const MemoryEvent& event);
  [[nodiscard]] bool end_before(Change& change);
  void take(Change& change);
  void free(Change& change);
  void end(const Block* block, Change& change);
  void begin_clearing();
  [[nodiscard]] bool clear_next(Change& change);
  [[nodiscard]] bool go_on(Change& change);
  [[nodiscard]] bool unmap_next(Change& change);
  [[nodiscard]] bool insert_mapping(const Block& block);
  void bring_back(Change& change);
  void take_segment(Change& change);
  [[nodiscard]] bool end_segment(Change& change);
  [[nodiscard]] bool comes_late(const MemoryEvent& event, std::uint32_t space);
  [[nodiscard]] bool was_paused_since(const Block& block, std::int64_t now) const noexcept;

  const Source& source_;
  const Timeline& timeline_;
  std::int64_t end_;
  Budget budget_;
  MemoryEvents events_;
  std::optional<std::vector<std::int64_t>> starts_;  // of the recording of memory
  // The blocks in use: the process's, of which a state tells, and those of pools.
  LiveBlocks own_, pooled_;
  LiveBlocks segments_;
  Origins origins_;
  IdMap<Thread> threads_;
  std::uint32_t thread_id_ = 0;
  Thread* thread_ = nullptr;  // the one with that id
  Thread nobody_;             // of threads that there was no room for
  IdMap<std::uint32_t> pools_;
  std::unordered_map<Where, Late, WhereHash> late_;
  MappedRanges mapped_;
  // What the last event still has to do, in this order: what is left of a mapping, ...
  Change rest_[2];
  std::size_t rests_ = 0;
  // ... blocks of the state before, the last first, and then the state itself, ...
  std::vector<Where> clearing_;
  bool is_clearing_ = false;
  // ... further mappings in this range, ...
  MemoryEvent pending_{};
  bool is_unmapping_ = false;
  // ... and to take the place of what was there.
  bool is_pending_ = false;
  MemoryCounts counts_;
};

}  // namespace whence::read
