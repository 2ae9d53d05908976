// cursor.h: where a thread writes its next record.
//
// Threads: its own, and whoever closes it (cursors.h), by the handshake below.
// Allocates: never. Fails by: enter() returns false; the slow path knows why.
//
// The thread says that it is busy before it looks at `limit`; whoever closes a cursor clears
// `limit` before looking at `busy`. A barrier on the closing side (membarrier) orders the two
// pairs, so the writing side needs none: either the thread finds no limit, or the closer waits.
//
// Cursors lie in pages that a forked child finds zeroed: no limit, so it never writes into its
// parent's file, however it was forked.
#pragma once

#include <atomic>
#include <cstdint>

#include "format/chunk.h"
#include "format/kind.h"

namespace whence::store {

struct alignas(64) Cursor {
  // The hot line.
  std::atomic<std::uint8_t*> limit;  // a record of kLongestCompact bytes may begin before this
  std::atomic<std::uint8_t*> place;  // where it would begin
  std::uint64_t* committed;          // in the header of the chunk
  std::atomic<std::uint64_t> word;   // what was committed last
  std::atomic<std::uint32_t> busy;
  std::uint32_t thread;  // its number in the recording
  format::Deltas deltas;

  // The rest is touched when chunks change hands, under the store's lock, or by the thread itself.
  std::uint64_t spans;        // begun by this thread
  std::uint64_t events;       // produced before this thread took the chunk
  std::uint64_t taken_word;   // `word` at that time
  std::uint64_t lost_events;  // dropped since the last chunk, for
  std::uint32_t lost_reason;  // this reason
  std::uint32_t chunk;        // its index; kNoChunk: the thread has had none in this life
  std::uint32_t generation;   // of the recording; 0: the slot is free
  std::uint32_t os_id;
  std::uint64_t chunks;  // that this thread has had
  Cursor* next_free;
  bool late;  // its thread had ended before: nobody may say when it does again

  [[gnu::always_inline]] bool enter() noexcept {
    busy.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return next() < limit.load(std::memory_order_relaxed);
  }

  [[nodiscard, gnu::always_inline]] std::uint8_t* next() const noexcept {
    return place.load(std::memory_order_relaxed);
  }

  [[gnu::always_inline]] void leave() noexcept { busy.store(0, std::memory_order_release); }

  // The record that begins at `begin`, which is next(), and ends at `end` counts from here on,
  // whatever happens to the process.
  [[gnu::always_inline]] void commit(const std::uint8_t* begin, std::uint8_t* end,
                                     std::uint64_t events_in_it) noexcept {
    const std::uint64_t now =
        committed_word() + static_cast<std::uint64_t>(end - begin) + events_in_it;
    word.store(now, std::memory_order_relaxed);
    place.store(end, std::memory_order_relaxed);
    format::publish_committed(*committed, now);
    leave();
  }

  // Room for one more record of this size in the chunk? While entered.
  [[gnu::always_inline]] bool has_room(std::size_t size) const noexcept {
    return next() + size < limit.load(std::memory_order_relaxed) + format::kLongestCompact;
  }

  [[nodiscard]] std::uint64_t committed_word() const noexcept {
    return word.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t events_in_chunk() const noexcept {
    return format::Committed::from(committed_word()).events -
           format::Committed::from(taken_word).events;
  }
};

static_assert(sizeof(Cursor) == 192);

}  // namespace whence::store
