// write.h: one record into this thread's chunk. The hot path of every probe.
//
// Threads: any, each its own chunk. Not inside a signal handler.
// Allocates: never; the slow path takes a chunk, by mmap.
// Fails by: 0; the event is then counted under its reason.
//
// Budget: the clock, and about 40 instructions for a mark: find this thread's cursor, say that it
// is busy, compare for room, encode, publish the length. No lock, no loop but the varints'.
#pragma once

#include "base/clock.h"
#include "store/store.h"

namespace whence::store {

// encode(cursor, now) -> end writes a record of kind R in at most kLongestCompact bytes at
// cursor.next, for this recording. The time of the record, or 0. A cursor that has a limit belongs
// to the recording that is on, and any other goes the slow way: no check is needed here.
template <class R, class Encode>
[[gnu::always_inline]] inline std::uint64_t write_with(std::uint32_t generation,
                                                       Encode&& encode) noexcept {
  constexpr std::uint64_t kEvents = R::kKind.event ? format::kOneEvent : 0;
  Cursor* cursor = detail::this_cursor;
  if (cursor == nullptr || !cursor->enter()) [[unlikely]] {
    cursor = store().refill(generation, cursor, format::kLongestCompact, kEvents >> 32);
    if (cursor == nullptr) return 0;
  }
  const std::uint64_t now = base::ticks();
  std::uint8_t* begin = cursor->next();
  cursor->commit(begin, encode(*cursor, now), kEvents);
  return now;
}

// The same with what follows the time.
template <class R, class... Values>
[[gnu::always_inline]] inline std::uint64_t write(std::uint32_t generation,
                                                  Values... values) noexcept {
  return write_with<R>(generation, [&](Cursor& cursor, std::uint64_t now) {
    return R::encode(cursor.next(), cursor.deltas, now, values...);
  });
}

// The same for a fast path that has a slow one at hand, which calls write(): false if there is no
// room here, and nothing has happened. It calls nothing, so its caller saves no register for it.
template <class R, class Clock, class... Values>
[[gnu::always_inline]] inline bool write_if_room(Values... values) noexcept {
  Cursor* cursor = detail::this_cursor;
  if (cursor == nullptr) [[unlikely]]
    return false;
  if (!cursor->enter()) [[unlikely]] {
    cursor->leave();
    return false;
  }
  std::uint8_t* begin = cursor->next();
  std::uint8_t* end = R::encode(begin, cursor->deltas, Clock::ticks(), values...);
  cursor->commit(begin, end, R::kKind.event ? format::kOneEvent : 0);
  return true;
}

// Room for a record that write_with() is to have later, unless somebody takes the chunk.
inline void make_room(std::uint32_t generation) noexcept {
  Cursor* cursor = detail::this_cursor;
  if (cursor == nullptr || !cursor->enter()) {
    cursor = store().refill(generation, cursor, format::kLongestCompact, 0);
  }
  if (cursor != nullptr) cursor->leave();
}

// Is this thread in the middle of writing? Only a signal handler may find that it is.
[[nodiscard]] inline bool is_writing() noexcept {
  const Cursor* cursor = detail::this_cursor;
  return (cursor != nullptr && cursor->busy.load(std::memory_order_relaxed) != 0) ||
         base::holds_locks();
}

// What holds for the whole recording from now on, as metadata. False if it found no room.
template <class R, class... Values>
bool write_fact(Values... values) noexcept {
  const auto encode = [&](std::uint8_t* out, format::Deltas& deltas) {
    return R::encode(out, deltas, base::ticks(), values...);
  };
  return store().write_metadata(format::kLongestCompact, encode);
}

// The same as write() for records with a body of any size that fits into a chunk:
// encode(out) -> end.
template <class Encode>
inline bool write_body(std::uint32_t generation, std::size_t size, Encode&& encode) noexcept {
  Cursor* cursor = detail::this_cursor;
  if (cursor == nullptr || !cursor->enter() || !cursor->has_room(size)) [[unlikely]] {
    cursor = store().refill(generation, cursor, size, 0);
    if (cursor == nullptr) return false;
  }
  std::uint8_t* begin = cursor->next();
  cursor->commit(begin, encode(begin), 0);
  return true;
}

}  // namespace whence::store
