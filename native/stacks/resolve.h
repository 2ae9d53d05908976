// resolve.h: naming the frames of a stack, long after it was captured.
//
// Threads: any.
// Allocates: content_hash() does, by mmap.
// Fails by: frames that say they are unknown. Views returned are valid for ever.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/line_table.h"
#include "base/lock.h"
#include "stacks/mixed_frames.h"
#include "stacks/store.h"

namespace whence::stacks {

enum class FrameKind : std::uint8_t { python, native, truncated, unmerged };

[[nodiscard]] std::string_view name_of(FrameKind kind) noexcept;

// A native frame has no name: `filename` is the module's, `address` lies in it.
struct ResolvedFrame {
  FrameKind kind;
  std::string_view name, filename;
  base::Location place;
  std::string_view build_id = {};  // in hexadecimal
  std::uint32_t address = 0;
};

// The frame that `id` adds to its parent.
[[nodiscard]] ResolvedFrame resolve(StackId id) noexcept;

// Calls visit(StackId) for each frame, innermost first; resolve() gives the frame's facts. A
// truncated stack begins with its truncation mark.
template <class Visit>
void for_each_frame(StackId stack, Visit&& visit) {
  const StackTable& table = store().stacks;
  if (is_truncated(stack)) visit(StackId{kTruncated});
  for (StackId id = whole_part(stack); id != kEmpty; id = table.node(id).parent) {
    if (!is_python_run(table.node(id).code)) {
      visit(id);
      continue;
    }
    const PythonRun run = python_run(table, id);
    for (StackId frame = run.inner; frame != run.outer && frame != kEmpty;
         frame = table.node(frame).parent) {
      visit(frame);
    }
  }
}

// A hash of what a stack's frames say (name, file, place), the same for two stacks whose frames
// read the same. Each distinct stack is hashed once in the life of the process. False for lack of
// memory.
[[nodiscard]] bool content_hash(StackId stack, std::uint64_t& hash) noexcept;
// Taken while a hash is stored; for fork() alone.
[[nodiscard]] base::Lock& memo_lock() noexcept;

// One step of that hash, outermost frame first, starting from 0: for frames that come from
// elsewhere.
[[nodiscard]] std::uint64_t content_hash_step(std::uint64_t outer, std::uint64_t name_hash,
                                              std::uint64_t filename_hash,
                                              base::Location place) noexcept;

}  // namespace whence::stacks
