// store_threads.cpp: threads and their chunks: how one comes to a thread, and where it goes when
// the thread ends.
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/clock.h"
#include "format/records/lost.h"
#include "format/records/thread.h"
#include "store/store.h"

namespace whence::store {

using format::Committed;
using format::Reason;

namespace {

// Called by the C library when a thread ends; again if a later destructor has made another cursor.
void on_thread_end(void*) {
  store().this_thread_ends();
}

// Of each chunk, for what is said at its beginning.
constexpr std::size_t kReserved = 4 * format::kLongestCompact;

pthread_key_t end_key;
bool has_end_key = false;  // both written once, under the store's lock, before the first cursor

// Outside the store's lock: the C library may allocate for it. Any value will do.
void watch_end_of_thread() noexcept {
  if (has_end_key && pthread_getspecific(end_key) == nullptr) {
    pthread_setspecific(end_key, &detail::the_store);
  }
}

// Probes write in the middle of what the program does, and what fails here is not its business.
class KeptErrno {
 public:
  KeptErrno() noexcept = default;
  ~KeptErrno() { errno = before_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  const int before_ = errno;
};

// Which thread this was when it ended: another destructor may still write.
struct Identity {
  std::uint32_t generation, thread;
  std::uint64_t spans, events, chunks;
};
thread_local constinit Identity last_identity = {};

// Asked by a thread that has no cursor: what has its number is of one that had it before.
bool is_gone(std::uint32_t os_id) noexcept {
  if (os_id == static_cast<std::uint32_t>(syscall(SYS_gettid))) return true;
  return syscall(SYS_tgkill, getpid(), os_id, 0) != 0 && errno == ESRCH;
}

}  // namespace

void Store::prepare_for_ends_of_threads() noexcept {
  if (!has_end_key) has_end_key = pthread_key_create(&end_key, on_thread_end) == 0;
}

Cursor* Store::refill(std::uint32_t recording, Cursor* cursor, std::size_t size,
                      std::uint64_t events) noexcept {
  const KeptErrno kept;
  if (cursor != nullptr) cursor->leave();
  size = std::max(size, format::kLongestCompact);  // what enter() asks for
  for (;;) {
    if (!cursors_.same_process()) return nullptr;
    bool fresh = false;
    {
      const base::Holding holding(lock_);
      if (state_ == State::idle || recording != last_generation_) return nullptr;
      if (cursor == nullptr) cursor = detail::this_cursor;  // a signal handler may have taken one
      cursor = own(cursor, true);
      Reason reason = header_->reason;
      if (state_ == State::on) {
        if (cursor == nullptr) {
          reason = Reason::memory;
        } else if (size > capacity() - kReserved) {
          reason = Reason::too_large;
        } else if (!(cursor->committed != nullptr && cursor->has_room(size))) {
          fresh = give_chunk(*cursor);
          if (!fresh) reason = state_ == State::on ? Reason::limit : header_->reason;
        }
      }
      if (reason != Reason::none) {
        drop(cursor, reason, events);
        return nullptr;
      }
    }
    watch_end_of_thread();
    const NewChunk on_new_chunk = on_new_chunk_.load(std::memory_order_acquire);
    if (fresh && on_new_chunk != nullptr) on_new_chunk(recording);
    if (cursor->enter() && cursor->has_room(size)) return cursor;
    cursor->leave();  // somebody took the chunk already: a ring that is too small for its threads
  }
}

// This thread's cursor for this recording.
Cursor* Store::own(Cursor* cursor, bool known) noexcept {
  if (cursor != nullptr && cursor->generation == last_generation_) return cursor;
  if (cursor == nullptr) {
    if (has_late_) end_late_threads();
    cursor = cursors_.take(last_generation_);
    if (cursor == nullptr) return nullptr;
    detail::this_cursor = cursor;
  }
  Cursor* next_free = cursor->next_free;
  new (cursor) Cursor{};
  cursor->next_free = next_free;
  cursor->generation = last_generation_;
  cursor->chunk = kNoChunk;
  cursor->os_id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  if (last_identity.generation == last_generation_) {
    cursor->thread = last_identity.thread;
    cursor->spans = last_identity.spans;
    cursor->events = last_identity.events;
    cursor->chunks = last_identity.chunks;
    cursor->late = has_late_ = true;
    return cursor;
  }
  cursor->thread = claim_introduced(cursor->os_id);
  if (cursor->thread != 0 && known) return cursor;
  cursor->thread = ++last_thread_;
  const auto encode = [&](std::uint8_t* out, format::Deltas& deltas) {
    return format::Thread::encode(out, deltas, base::ticks(), cursor->thread, cursor->os_id, 0,
                                  known);
  };
  append_metadata(format::kLongestCompact, encode);
  return cursor;
}

// A thread that had a name before it had an event is known by the system's number for it, which may
// come back for another thread: one that says of itself that it is new takes no such name.
std::uint32_t Store::claim_introduced(std::uint32_t os_id) noexcept {
  for (std::size_t i = 0; i < introduced_count_; ++i) {
    if (introduced_[i].os_id != os_id) continue;
    const std::uint32_t thread = introduced_[i].thread;
    introduced_[i] = introduced_[--introduced_count_];
    return thread;
  }
  return 0;
}

std::uint32_t Store::find_thread(std::uint32_t os_id) noexcept {
  std::uint32_t thread = 0;
  cursors_.for_each(last_generation_, [&](const Cursor& cursor) {
    if (cursor.os_id == os_id) thread = cursor.thread;
  });
  for (std::size_t i = 0; i < introduced_count_; ++i) {
    if (introduced_[i].os_id == os_id) thread = introduced_[i].thread;
  }
  return thread;
}

void Store::introduce(std::uint32_t os_id, std::uint32_t thread, std::uint64_t name) noexcept {
  if (introduced_count_ < kMostIntroduced) introduced_[introduced_count_++] = {os_id, thread};
  append_metadata(format::kLongestCompact, [&](std::uint8_t* out, format::Deltas& deltas) {
    return format::Thread::encode(out, deltas, base::ticks(), thread, os_id, name, true);
  });
}

std::uint32_t Store::thread_number(std::uint32_t os_id) noexcept {
  if (!cursors_.same_process()) return 0;
  const base::Holding holding(lock_);
  if (state_ != State::on) return 0;
  std::uint32_t thread = find_thread(os_id);
  if (thread == 0) introduce(os_id, thread = ++last_thread_, 0);
  return thread;
}

void Store::name_thread(std::uint32_t os_id, std::uint64_t name) noexcept {
  if (!cursors_.same_process()) return;
  const base::Holding holding(lock_);
  if (state_ != State::on) return;
  const std::uint32_t thread = find_thread(os_id);
  if (thread == 0) return introduce(os_id, ++last_thread_, name);
  append_metadata(format::kLongestCompact, [&](std::uint8_t* out, format::Deltas& deltas) {
    return format::ThreadName::encode(out, deltas, base::ticks(), thread, name);
  });
}

std::uint32_t Store::this_thread(bool known) noexcept {
  if (!cursors_.same_process()) return 0;
  Cursor* cursor = nullptr;
  {
    const base::Holding holding(lock_);
    if (state_ != State::on) return 0;
    cursor = own(detail::this_cursor, known);
  }
  if (cursor == nullptr) return 0;
  watch_end_of_thread();
  return cursor->thread;
}

bool Store::give_chunk(Cursor& cursor) noexcept {
  detach(cursor);
  if (give_parked(cursor)) return true;
  const std::uint32_t index =
      take_chunk(format::ChunkClass::events, &cursor, cursor.thread, cursor.events);
  if (index == kNoChunk) return false;
  if (cursor.chunks != 0) File::fill(chunks_.at(index).mapped, chunk_size_);
  format::Deltas deltas;
  deltas.time = chunks_.at(index).mapped->start_ticks;
  attach(cursor, index, 0, deltas);
  if (cursor.lost_events != 0) {
    std::uint8_t* begin = cursor.next();
    std::uint8_t* end = format::Lost::encode(begin, cursor.deltas, base::ticks(),
                                             cursor.lost_reason, cursor.lost_events);
    cursor.commit(begin, end, 0);
    cursor.lost_events = 0;
  }
  return true;
}

// What is left of an ended thread's chunk will do for a thread that has just begun.
bool Store::give_parked(Cursor& cursor) noexcept {
  if (parked_count_ == 0 || cursor.chunk != kNoChunk) return false;
  const Parked parked = parked_[--parked_count_];
  format::Deltas deltas = parked.deltas;
  format::ChunkHeader& header = *chunks_.at(parked.chunk).mapped;
  auto* out = reinterpret_cast<std::uint8_t*>(&header + 1) + Committed::from(parked.word).bytes;
  std::uint8_t* end =
      format::Owner::encode(out, deltas, base::ticks(), cursor.thread, cursor.events);
  const std::uint64_t word = parked.word + static_cast<std::uint64_t>(end - out);
  format::publish_committed(header.committed, word);
  attach(cursor, parked.chunk, word, deltas);
  return true;
}

void Store::attach(Cursor& cursor, std::uint32_t chunk, std::uint64_t word,
                   const format::Deltas& deltas) noexcept {
  ChunkInfo& info = chunks_.at(chunk);
  info.owner = &cursor;
  info.handed_over = Committed::from(word).events;
  auto* payload = reinterpret_cast<std::uint8_t*>(info.mapped + 1);
  cursor.chunk = chunk;
  ++cursor.chunks;
  cursor.committed = &info.mapped->committed;
  cursor.word = word;
  cursor.taken_word = word;
  cursor.deltas = deltas;
  cursor.place = payload + Committed::from(word).bytes;
  cursor.limit.store(payload + capacity() - format::kLongestCompact + 1, std::memory_order_relaxed);
}

// The cursor is closed, or its own thread is here. Seals the chunk.
void Store::detach(Cursor& cursor) noexcept {
  cursor.limit.store(nullptr, std::memory_order_relaxed);
  if (cursor.committed == nullptr) return;
  cursor.events += cursor.events_in_chunk();
  cursor.committed = nullptr;
  cursor.place = nullptr;
  seal(cursor.chunk, cursor.committed_word());
}

void Store::this_thread_ends() noexcept {
  if (detail::this_cursor == nullptr) return;
  Cursor& cursor = *detail::this_cursor;
  detail::this_cursor = nullptr;
  if (!cursors_.same_process()) return;
  const base::Holding holding(lock_);
  if (state_ != State::idle && cursor.generation == last_generation_) {
    const std::uint64_t events = end(cursor);
    last_identity = {cursor.generation, cursor.thread, cursor.spans, events, cursor.chunks};
  }
  cursors_.give_back(cursor);
}

// The C library gives memory back when the last destructor has been called, and nothing is called
// after that. So whoever comes next looks whether such threads are still there.
void Store::end_late_threads() noexcept {
  has_late_ = false;
  cursors_.for_each(last_generation_, [&](Cursor& cursor) {
    if (!cursor.late) return;
    if (!is_gone(cursor.os_id)) {
      has_late_ = true;
      return;
    }
    end(cursor);
    cursors_.give_back(cursor);
  });
}

// How many events it had.
std::uint64_t Store::end(Cursor& cursor) noexcept {
  const std::uint64_t events =
      cursor.events + (cursor.committed != nullptr ? cursor.events_in_chunk() : 0);
  append_metadata(format::kLongestCompact, [&](std::uint8_t* out, format::Deltas& deltas) {
    return format::ThreadEnd::encode(out, deltas, base::ticks(), cursor.thread, events);
  });
  const bool worth_keeping = cursor.committed != nullptr &&
                             Committed::from(cursor.committed_word()).bytes < capacity() * 3 / 4;
  if (state_ == State::on && worth_keeping && parked_count_ < kMostParked) {
    ChunkInfo& chunk = chunks_.at(cursor.chunk);
    chunk.owner = nullptr;
    chunk.handed_over = Committed::from(cursor.committed_word()).events;
    parked_[parked_count_++] = {cursor.chunk, cursor.committed_word(), cursor.deltas};
  } else {
    detach(cursor);
  }
  return events;
}

void Store::seal_parked() noexcept {
  while (parked_count_ != 0) {
    const Parked& parked = parked_[--parked_count_];
    seal(parked.chunk, parked.word);
  }
}

}  // namespace whence::store
