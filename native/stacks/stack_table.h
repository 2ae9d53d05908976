// stack_table.h: every stack ever seen, each as one 32-bit id.
//
// Threads: any. Looking a stack up takes no lock; adding one takes the table's (rank `stacks`).
// Allocates: when it grows, by mmap; nothing that a reader holds ever moves.
// Fails by: a truncated id (below), counted. The capture goes on.
//
// A stack is a node: the frame that runs, and the node of the stack that called it. Node 0 is the
// empty stack.
//
//      0 <- main+12 <- load+40 <- parse+8       ids 1, 2, 3; equal stacks are equal ids
//                   <- load+66 <- parse+8       ids 4, 5
//
// The highest bit of an id marks a stack whose inner frames could not be kept: the rest of the id
// is the stack up to there. So a full table costs nothing more, keeps what it can and never hides a
// loss.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/id_index.h"
#include "base/lock.h"
#include "base/segments.h"

namespace whence::stacks {

using StackId = std::uint32_t;
using CodeId = std::uint32_t;

inline constexpr StackId kEmpty = 0;
inline constexpr StackId kTruncated = 0x80000000;

[[nodiscard]] constexpr bool is_truncated(StackId id) noexcept {
  return (id & kTruncated) != 0;
}
[[nodiscard]] constexpr StackId whole_part(StackId id) noexcept {
  return id & ~kTruncated;
}

// A frame may be found at several offsets that are one place in the source. The others are aliases:
// nodes that stand for another, and whose ids nobody is given.
struct Node {
  StackId parent;
  CodeId code;
  std::int32_t offset;  // of the instruction, in bytes, as f_lasti
  std::uint32_t depth;  // frames from here to the outermost; of an alias, kAlias and its target
};

class StackTable {
 public:
  static constexpr std::uint32_t kDefaultCap = std::uint32_t{1} << 24;

  // The id of `parent` with one more frame, or kEmpty if it is not there yet.
  [[nodiscard]] StackId find(StackId parent, CodeId code, std::int32_t offset) const noexcept;
  // The same, added if need be. A node may stand for several frames (stacks/mixed_frames.h).
  [[nodiscard]] StackId intern(StackId parent, CodeId code, std::int32_t offset,
                               std::uint32_t frames = 1) noexcept;
  // From now on find() gives `target` for this frame. Not having room for that is no loss.
  void add_alias(StackId parent, CodeId code, std::int32_t offset, StackId target) noexcept;

  [[nodiscard]] const Node& node(StackId id) const noexcept { return *nodes_.at(id); }
  [[nodiscard]] bool contains(StackId id) const noexcept;
  [[nodiscard]] std::uint32_t depth(StackId id) const noexcept;

  // How many nodes the table may hold. Nodes that are there already stay.
  void set_cap(std::uint32_t cap) noexcept;

  struct Statistics {
    std::uint32_t nodes, cap;
    std::uint64_t truncated;  // captures cut short by the cap or by lack of memory
    std::size_t bytes;
  };
  [[nodiscard]] Statistics statistics() const noexcept;
  void count_truncated() noexcept { truncated_.fetch_add(1, std::memory_order_relaxed); }

  // For fork() alone.
  [[nodiscard]] base::Lock& lock() noexcept { return lock_; }

 private:
  static constexpr std::uint32_t kAlias = 0x80000000;

  // Adds a node and returns its id, or kEmpty if there is no room for it. Under lock_.
  [[nodiscard]] StackId add(const Node& node) noexcept;
  [[nodiscard]] StackId find_node(const Node& key) const noexcept;

  base::Lock lock_{base::Rank::stacks};
  base::Segments<Node, 12> nodes_;       // written under lock_ before the id is published
  base::IdIndex index_;                  // insert under lock_
  std::atomic<std::uint32_t> last_ = 0;  // the newest id; written under lock_
  std::atomic<std::uint32_t> cap_ = kDefaultCap;
  std::atomic<std::uint64_t> truncated_ = 0;
};

}  // namespace whence::stacks
