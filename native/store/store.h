// store.h: the recording that this process writes.
//
// Threads: any. Everything but the hot path (write.h) happens under one lock (rank `store`), which
// no forked child ever takes: it finds out first that it is a child.
// Allocates: by mmap only.
// Fails by: an errno from start(); after that by ending the recording with a reason. Events are
// then dropped and counted, and the program goes on.
//
//      idle --start()--> on --stop()--> idle
//                         '--a failure--> ended --stop()--> idle
//
// There is one store, and it is never destroyed: threads that are late find it whole.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/lock.h"
#include "base/segments.h"
#include "format/file.h"
#include "store/chunks.h"
#include "store/cursors.h"
#include "store/file.h"

namespace whence::store {

struct Options {
  const char* path = nullptr;
  bool overwrite = false;
  std::uint32_t chunk_size = format::kDefaultChunk;
  std::uint64_t max_size = 0;  // bytes, 0: no bound
  std::uint64_t keep = 0;      // nanoseconds, 0: no bound
};

enum class State : std::uint8_t { idle, on, ended };

struct Status {
  State state;
  format::Reason reason;
  int error;
  std::uint64_t recorded;
  std::array<std::uint64_t, format::kReasons> dropped;
  std::uint64_t names_lost;
  std::uint64_t bytes;                         // of the file
  int descriptor;                              // of the file; -1: it is not ours any more
  std::uint64_t start_ticks, start_monotonic;  // when it began
};

// The clock of this process, chosen when it is first asked for.
base::ClockKind choose_clock() noexcept;

class Store {
 public:
  // An errno, and nothing has changed. A failure after the file was made is no errno: the recording
  // has then ended before it began, with a reason.
  [[nodiscard]] int start(const Options& options) noexcept;
  // The file's descriptor, for the caller to close; -1 if there is none.
  int stop() noexcept;

  // Which recording an event would go into; 0: none. The first thing that a probe asks, once: what
  // it finds out for one recording must not get into another.
  [[nodiscard, gnu::always_inline]] std::uint32_t generation() const noexcept {
    return generation_.load(std::memory_order_acquire);
  }

  // The slow path of a write. A cursor of this thread, entered, with room for `size` bytes; or
  // nullptr, and `events` are counted as dropped, unless that recording is not on any more.
  [[nodiscard, gnu::cold, gnu::noinline]] Cursor* refill(std::uint32_t generation, Cursor* cursor,
                                                         std::size_t size,
                                                         std::uint64_t events) noexcept;

  // Called on a thread that has been given a chunk, before anything is written into it; so that
  // what is in it can be read without the chunks before it.
  using NewChunk = void (*)(std::uint32_t generation) noexcept;
  void set_on_new_chunk(NewChunk function) noexcept {
    on_new_chunk_.store(function, std::memory_order_release);
  }

  // The number of this thread in the recording, or 0; met for the first time if need be.
  [[nodiscard]] std::uint32_t this_thread(bool known) noexcept;
  // It may still write, as the same thread, and end again.
  void this_thread_ends() noexcept;
  // The number of a thread of this process, which may not have had an event yet; 0 if there is
  // none.
  [[nodiscard]] std::uint32_t thread_number(std::uint32_t os_id) noexcept;
  // Gives a name to one.
  void name_thread(std::uint32_t os_id, std::uint64_t name) noexcept;

  // Appends to the metadata: encode(out, deltas) -> end, at most `size` bytes. False if it found
  // no room.
  template <class Encode>
  bool write_metadata(std::size_t size, Encode&& encode) noexcept {
    if (!cursors_.same_process()) return false;
    const base::Holding holding(lock_);
    return append_metadata(size, encode);
  }

  // Before a table is written as metadata, in so many parts of that size: tables may be as large as
  // they like, so all of them have half of the room, and one has half of what is left of it. Then
  // names find some. False: there is none for all of it, which counts as a name.
  [[nodiscard]] bool has_room_for_table(std::uint32_t generation, std::uint64_t parts,
                                        std::size_t part_size) noexcept;

  // The number of a string in the recording, written first if need be; 0 if it found no room. The
  // string is one that base::names() keeps under `ref`.
  [[nodiscard, gnu::always_inline]] std::uint64_t string(std::uint32_t generation,
                                                         std::uint32_t ref) noexcept {
    if (written_.has(ref) && written_.at(ref)->load(std::memory_order_acquire) == generation)
        [[likely]] {
      return std::uint64_t{ref} + 1;
    }
    return write_string(generation, ref);
  }
  // Is a stack written, or has it found no room?
  [[nodiscard, gnu::always_inline]] bool has_stack(std::uint32_t generation,
                                                   std::uint32_t id) const noexcept {
    if (!written_stacks_.has(id)) return false;
    const std::uint32_t written = written_stacks_.at(id)->load(std::memory_order_acquire);
    return written == generation || written == ~generation;
  }
  // A stack, unless it is written; those below it must be.
  void write_stack(std::uint32_t generation, std::uint32_t id, std::uint32_t parent,
                   std::uint32_t code, std::int32_t offset) noexcept;
  // The same of one that ends in a native frame, or in a run of Python frames.
  void write_native_stack(std::uint32_t generation, std::uint32_t id, std::uint32_t parent,
                          std::uint32_t module, std::uint32_t address) noexcept;
  void write_python_run(std::uint32_t generation, std::uint32_t id, std::uint32_t parent,
                        std::uint32_t python) noexcept;
  // Has the metadata no room for a name that nobody has used before? One is counted as lost.
  [[nodiscard]] bool refuses_names(std::uint32_t generation) noexcept;

  [[nodiscard]] Status status() noexcept;

  // Writes what the recording holds at this moment to another file. An errno.
  [[nodiscard]] int dump(int file) noexcept;
  // The chunk that this thread writes into, and whether it is still that one: a ring may have taken
  // it for something else.
  struct Spot {
    std::uint32_t chunk = kNoChunk;
    std::uint64_t sequence = 0;
  };
  [[nodiscard]] Spot this_spot() noexcept;
  [[nodiscard]] bool is_there(const Spot& spot) noexcept;
  // Which file the recording is in, while it is on.
  [[nodiscard]] base::FileId file_id() noexcept;

  // Is this a child that was made past the C library's fork()? Then no lock may be taken.
  [[nodiscard]] bool in_wiped_child() const noexcept { return cursors_.in_wiped_child(); }
  // In a forked child, where only this thread is left.
  void forget_parent() noexcept;

 private:
  template <class Encode>
  void write_node(std::uint32_t generation, std::uint32_t id, Encode&& encode) noexcept;
  struct Metadata {
    std::uint32_t chunk = kNoChunk;
    std::uint8_t* next = nullptr;
    std::uint8_t* end = nullptr;
    std::uint64_t word = 0;
    format::Deltas deltas;
  };
  // What a thread that ended has left of its chunk.
  struct Parked {
    std::uint32_t chunk;
    std::uint64_t word;
    format::Deltas deltas;
  };
  // A thread that has a name but no cursor yet.
  struct Introduced {
    std::uint32_t os_id, thread;
  };
  struct Snapshot;

  // All of these under lock_.
  [[nodiscard]] int map_header() noexcept;
  static void prepare_for_ends_of_threads() noexcept;
  [[nodiscard]] Cursor* own(Cursor* cursor, bool known) noexcept;
  [[nodiscard]] std::uint32_t claim_introduced(std::uint32_t os_id) noexcept;
  [[nodiscard]] std::uint32_t find_thread(std::uint32_t os_id) noexcept;
  void introduce(std::uint32_t os_id, std::uint32_t thread, std::uint64_t name) noexcept;
  [[nodiscard]] bool give_chunk(Cursor& cursor) noexcept;
  [[nodiscard]] bool give_parked(Cursor& cursor) noexcept;
  void attach(Cursor& cursor, std::uint32_t chunk, std::uint64_t word,
              const format::Deltas& deltas) noexcept;
  void detach(Cursor& cursor) noexcept;
  [[nodiscard]] std::uint32_t take_chunk(format::ChunkClass what, const Cursor* taker,
                                         std::uint32_t thread, std::uint64_t first_event) noexcept;
  [[nodiscard]] std::uint32_t find_chunk(format::ChunkClass what, const Cursor* taker) noexcept;
  // Chunks.
  [[nodiscard]] std::uint64_t most_metadata() const noexcept;
  [[nodiscard]] std::uint32_t grow(bool will_be_filled) noexcept;
  [[nodiscard]] bool map_chunk(std::uint32_t index) noexcept;
  void retire(std::uint32_t index) noexcept;
  void seal(std::uint32_t index, std::uint64_t word) noexcept;
  [[nodiscard]] bool steal(std::uint32_t index) noexcept;
  void seal_parked() noexcept;
  std::uint64_t end(Cursor& cursor) noexcept;
  void end_late_threads() noexcept;
  void count_all() noexcept;
  void fail(format::Reason reason, int error) noexcept;
  void drop(Cursor* cursor, format::Reason reason, std::uint64_t events) noexcept;
  [[nodiscard]] std::uint8_t* reserve_metadata(std::size_t size) noexcept;
  void commit_metadata(std::uint8_t* end) noexcept;
  template <class Encode>
  bool append_metadata(std::size_t size, Encode&& encode) noexcept {
    std::uint8_t* out = reserve_metadata(size);
    if (out == nullptr) return false;
    commit_metadata(encode(out, metadata_.deltas));
    return true;
  }
  [[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t write_string(std::uint32_t generation,
                                                                     std::uint32_t ref) noexcept;
  [[nodiscard]] bool append_string(std::uint64_t id, std::span<const std::uint8_t> text) noexcept;
  void take_snapshot(Snapshot& snapshot) noexcept;
  [[nodiscard]] bool copy_chunk(Snapshot& snapshot, std::uint32_t number, int& error) noexcept;

  [[nodiscard]] std::uint64_t place_of(std::uint32_t index) const noexcept {
    return header_->header_size + std::uint64_t{index} * chunk_size_;
  }
  [[nodiscard]] std::size_t capacity() const noexcept {
    return chunk_size_ - sizeof(format::ChunkHeader);
  }

  static constexpr std::size_t kMostParked = 16;
  static constexpr std::size_t kMostIntroduced = 1024;

  base::Lock lock_{base::Rank::store};
  std::atomic<std::uint32_t> generation_ = 0;  // of the recording that is on; 0: none
  std::uint32_t last_generation_ = 0;          // this and the rest: under lock_
  State state_ = State::idle;
  File file_;
  format::FileHeader* header_ = nullptr;  // mapped, or &spare_header_ when that failed
  format::FileHeader spare_header_ = {};
  std::uint32_t chunk_size_ = 0;
  std::uint32_t most_chunks_ = 0;  // 0: no bound
  std::uint64_t keep_ticks_ = 0;
  std::atomic<bool> metadata_full_ = false;
  std::uint64_t tables_ = 0;  // bytes of metadata
  std::uint64_t sequence_ = 0;
  std::uint64_t sealed_events_ = 0;  // in sealed chunks
  std::uint32_t last_thread_ = 0;
  Chunks chunks_;
  Cursors cursors_;
  Metadata metadata_;
  Parked parked_[kMostParked] = {};
  std::size_t parked_count_ = 0;
  Introduced introduced_[kMostIntroduced] = {};
  std::size_t introduced_count_ = 0;
  bool has_late_ = false;  // there are cursors that say so
  // By string and by stack: in which generation it was written.
  base::Segments<std::atomic<std::uint32_t>, 10> written_;
  base::Segments<std::atomic<std::uint32_t>, 10> written_stacks_;
  std::atomic<NewChunk> on_new_chunk_ = nullptr;
};

namespace detail {
extern Store the_store;
// Found without a call: eight bytes of what the C library reserves for modules loaded late.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit Cursor* this_cursor;
}  // namespace detail

[[nodiscard]] inline Store& store() noexcept {
  return detail::the_store;
}

}  // namespace whence::store
