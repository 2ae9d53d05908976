// call_tree.cpp: see call_tree.h.
#include "read/call_tree.h"

#include "read/problems.h"

namespace whence::read {
namespace {

constexpr std::size_t kNodeCost = sizeof(TreeNode) * 2 + kEntryCost;

}  // namespace

void CallTree::take(const CallStep& step) {
  const Call& call = step.call;
  if (call.thread != current_thread_) {
    current_ = &open_[call.thread];
    current_thread_ = call.thread;
  }
  std::vector<std::uint32_t>& open = *current_;
  if (step.what == CallStep::What::left) {
    if (open.empty()) return;
    add(open.back(), call);
    open.pop_back();
    return;
  }
  const std::uint32_t parent = open.empty() ? 0 : open.back();
  const std::uint32_t node = child(parent, functions_.of(call));
  if (step.what == CallStep::What::folded) {
    add(node, call);
  } else {
    open.push_back(node);
  }
}

std::uint32_t CallTree::child(std::uint32_t parent, std::uint32_t function) {
  if (parent == kNoNode) return kNoNode;
  const std::uint64_t key = std::uint64_t{parent} << 32 | function;
  const auto found = children_.find(key);
  if (found != children_.end()) return found->second;
  if (function == Functions::kNone || !budget_.afford(kNodeCost)) return kNoNode;
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({parent, function, 0, 0, 0});
  children_.emplace(key, node);
  return node;
}

void CallTree::add(std::uint32_t number, const Call& call) noexcept {
  if (number == kNoNode) {
    left_out_ = add_counts(left_out_, call.count);
    return;
  }
  TreeNode& node = nodes_[number];
  node.calls = add_counts(node.calls, call.count);
  node.total = add_counts(node.total, static_cast<std::uint64_t>(call.duration));
  node.own = add_counts(node.own, static_cast<std::uint64_t>(call.own));
}

// A function's time counts once on each path: where no other call of it is around.
std::vector<FunctionTotal> add_up(const CallTree& tree) {
  const std::vector<TreeNode>& nodes = tree.nodes();
  std::vector<FunctionTotal> totals(tree.functions().all().size());
  // The children of each node, as lists, so that paths can be walked without recursion.
  std::vector<std::uint32_t> first(nodes.size(), 0), next(nodes.size(), 0);
  for (std::uint32_t i = static_cast<std::uint32_t>(nodes.size()); i-- > 1;) {
    next[i] = first[nodes[i].parent];
    first[nodes[i].parent] = i;
  }
  std::vector<std::uint32_t> around(totals.size(), 0);  // how often it is on the path
  std::uint32_t at = 0;
  const auto enter = [&](std::uint32_t i) {
    FunctionTotal& total = totals[nodes[i].function];
    total.calls = add_counts(total.calls, nodes[i].calls);
    total.own = add_counts(total.own, nodes[i].own);
    if (around[nodes[i].function]++ == 0) total.total = add_counts(total.total, nodes[i].total);
    at = i;
  };
  while (true) {
    if (first[at] != 0) {
      enter(first[at]);
      continue;
    }
    while (at != 0 && next[at] == 0) {
      --around[nodes[at].function];
      at = nodes[at].parent;
    }
    if (at == 0) break;
    --around[nodes[at].function];
    enter(next[at]);
  }
  return totals;
}

}  // namespace whence::read
