// call_tree.h: calls added up by the path of functions that leads to them.
//
// Threads: a tree belongs to one. Allocates: 40 bytes a path and an index entry, up to a budget.
// Fails by: counting calls that find no room; std::bad_alloc.
//
//      root -- main -- load -- parse      a node for each path: how often, how long,
//                   \- parse              how long without what is below it
//
// A node is added when a call begins, so that one look finds it: by its parent and its function.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "read/budget.h"
#include "read/calls.h"
#include "read/functions.h"

namespace whence::read {

struct TreeNode {
  std::uint32_t parent;    // 0: the root, which is its own
  std::uint32_t function;  // of the root: none
  std::uint64_t calls;
  std::uint64_t total, own;  // nanoseconds
};

class CallTree {
 public:
  // All outlive it.
  CallTree(const Names& names, Budget& budget) : functions_(names, budget), budget_(budget) {
    nodes_.push_back({0, Functions::kNone, 0, 0, 0});
  }

  void take(const CallStep& step);

  // Parents come before their children; the first is the root.
  [[nodiscard]] const std::vector<TreeNode>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const Functions& functions() const noexcept { return functions_; }
  // Calls for whose paths there was no room.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

 private:
  static constexpr std::uint32_t kNoNode = 0xFFFFFFFF;

  [[nodiscard]] std::uint32_t child(std::uint32_t parent, std::uint32_t function);
  void add(std::uint32_t node, const Call& call) noexcept;

  Functions functions_;
  Budget& budget_;
  std::vector<TreeNode> nodes_;
  IdMap<std::uint32_t> children_;           // by parent and function
  IdMap<std::vector<std::uint32_t>> open_;  // the nodes of open calls, by thread
  std::vector<std::uint32_t>* current_ = nullptr;
  std::uint64_t current_thread_ = ~std::uint64_t{0};
  std::uint64_t left_out_ = 0;
};

// What is known of a function after all of its calls.
struct FunctionTotal {
  std::uint64_t calls = 0;
  std::uint64_t total = 0;  // nanoseconds in which it was on the stack, however often
  std::uint64_t own = 0;
};

// By the numbers of functions.
[[nodiscard]] std::vector<FunctionTotal> add_up(const CallTree& tree);

}  // namespace whence::read
