// thread_tags.h: what a thread says about all that it does, from now on.
//
// Threads: each its own; set_tags() with the GIL, begin_chunk() also without.
// Allocates: set_tags() by malloc, for the text; both by mmap, for a name that is new.
// Fails by: leaving them out, and counting the name as lost.
//
// The text is kept here until a recording needs its number: a program whose tags are ever new ones
// does not fill the table of names while nothing is recorded. What is not told for want of room is
// told at the beginning of the next chunk.
#pragma once

#include <cstdint>
#include <span>

namespace whence::probes {

// The text of a JSON object with its keys sorted; empty: none.
void set_tags(std::span<const std::uint8_t> text) noexcept;

// What a new chunk of this thread begins with: its tags, and the frames that are open.
void begin_chunk(std::uint32_t recording) noexcept;

}  // namespace whence::probes
