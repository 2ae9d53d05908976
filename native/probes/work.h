// work.h: what a lowered program has done, under the handles that lead back to its source.
//
// Threads: any for worked(); one at a time for keep_table() of the same namespace.
// Allocates: never, but for a thread's chunk.
// Fails by: false; an event is counted, a table that finds no room is counted as a name.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "format/records/handle.h"
#include "store/write.h"

namespace whence::probes {

namespace detail {
// Readers look for work only where there is some.
inline std::atomic<std::uint32_t> work_is_on_in = 0;
inline void say_work_is_on(std::uint32_t recording) noexcept {
  if (work_is_on_in.load(std::memory_order_relaxed) == recording) return;
  if (store::write_fact<format::WorkOn>())
    work_is_on_in.store(recording, std::memory_order_relaxed);
}
}  // namespace detail

// `backend` and `name` are strings of the recording; `start` and `end` readings of the monotonic
// clock. What ends after now ends now, and what begins after its end has taken no time.
inline bool worked(std::uint32_t recording, std::uint64_t backend, std::int64_t handle,
                   std::uint64_t start, std::uint64_t end, std::uint64_t name) noexcept {
  const std::uint64_t now = base::nanoseconds(CLOCK_MONOTONIC);
  end = std::min(end, now);
  detail::say_work_is_on(recording);
  return store::write<format::HandleEvent>(recording, backend, handle, name, now - end,
                                           end - std::min(start, end)) != 0;
}

// `name_space` is a string of the recording, `table` the bytes of a file with handles of it. Of use
// only as a whole.
inline bool keep_table(std::uint32_t recording, std::uint64_t name_space,
                       std::span<const std::uint8_t> table) noexcept {
  constexpr std::size_t kPart = 2048;  // fits into the smallest chunk
  const std::uint64_t parts = (table.size() + kPart - 1) / kPart;
  const std::size_t size = format::body_size(name_space, kPart);
  if (!store::store().has_room_for_table(recording, parts, size)) return false;
  for (; !table.empty(); table = table.subspan(std::min(kPart, table.size()))) {
    const auto part = table.first(std::min(kPart, table.size()));
    const auto encode = [&](std::uint8_t* out, format::Deltas&) {
      return format::HandleTable::encode(out, name_space, part);
    };
    if (!store::store().write_metadata(format::body_size(name_space, part.size()), encode))
      return false;
  }
  return true;
}

}  // namespace whence::probes
