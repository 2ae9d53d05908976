// call_frames.h: the frames of a thread that a recording of calls is about, found by walking.
//
// Threads: the thread whose frames they are, attached; or, for a thread that waits for the GIL,
// whoever holds it. Allocates: pages for the frames found. Fails by: false.
#pragma once

#include <cstdint>

#include "base/growing_list.h"
#include "cpython/frames.h"
#include "stacks/stack_table.h"

namespace whence::probes {

struct FoundFrame {
  std::uintptr_t address;
  stacks::CodeId code;
  bool generator;
};

// The innermost frame from `frame` on that is recorded: neither hidden nor excluded.
[[nodiscard]] const cpython::Frame* nearest_recorded(const cpython::Frame* frame,
                                                     std::uint32_t recording) noexcept;

// All frames from `frame` on that are recorded, innermost first.
using FoundFrames = base::GrowingList<FoundFrame, 64>;
[[nodiscard]] bool find_recorded(FoundFrames& found, const cpython::Frame* frame,
                                 std::uint32_t recording) noexcept;

// Tells the open frames of this thread, at the beginning of its chunk or where they cannot be told
// from calls. For any thread; without the GIL too.
void tell_frames(std::uint32_t recording) noexcept;

// Tells the frames of all threads, as metadata. Under the GIL.
void tell_frames_of_all(std::uint32_t recording) noexcept;

}  // namespace whence::probes
