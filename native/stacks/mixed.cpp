// mixed.cpp: see mixed.h.
#include "stacks/mixed.h"

#include <algorithm>
#include <utility>

#include "base/pages.h"
#include "base/thread_end.h"
#include "cpython/evaluations.h"
#include "stacks/capture.h"
#include "stacks/modules.h"
#include "stacks/prefix_cache.h"
#include "stacks/store.h"

namespace whence::stacks {
namespace {

using unwind::Address;

[[gnu::tls_model("initial-exec")]] thread_local constinit MixedStacks mixed_stacks;
const base::ThreadEnd thread_end(MixedStacks::release);

constexpr std::size_t kFirstRoom = 85;  // runs; with as many more, a page

[[nodiscard]] StackId python_stack(cpython::Asker asker) noexcept {
  if (asker.state == nullptr) return kEmpty;
  if (walk_in_use() != Walk::fast) {
    return asker.attached ? capture(asker.state, 0, kNoLimit) : kEmpty;
  }
  const cpython::Frame* frame = cpython::innermost(asker.state);
  PrefixCache* cache = PrefixCache::mine();
  if (frame == nullptr || cache == nullptr) return kEmpty;
  return asker.attached ? cache->stack_at(frame) : cache->stack_at_detached(frame);
}

}  // namespace

inline StackId MixedStacks::add(StackId outer, CodeId code, std::int32_t offset,
                                std::uint32_t frames) noexcept {
  if (is_truncated(outer)) return outer;
  constexpr std::uint32_t kSpread = 0x9E3779B1;
  const auto mixed = (outer * kSpread ^ code ^ static_cast<std::uint32_t>(offset)) * kSpread;
  Recent& recent = recents_[mixed >> 21];
  static_assert(kRecents == std::size_t{1} << (32 - 21));
  if (recent.outer == outer && recent.code == code && recent.offset == offset &&
      recent.stack != kEmpty) {
    return recent.stack;
  }
  const StackId stack = store().stacks.intern(outer, code, offset, frames);
  if (!is_truncated(stack)) recent = {outer, code, offset, stack};
  return stack;
}

// This library's own frames are nobody's business.
inline StackId MixedStacks::add(StackId outer, unwind::FrameName name) noexcept {
  if (name == kOurs) return outer;
  if (name == kNameless) return add(outer, kNoCode, 0);
  return add(outer, kNativeCode | static_cast<CodeId>(name >> 32), static_cast<std::int32_t>(name));
}

StackId MixedStacks::add_gap(StackId outer) noexcept {
  return add(outer, kRemark, static_cast<std::int32_t>(Remark::gap));
}

inline StackId MixedStacks::add(StackId outer, const Run& run) noexcept {
  return add(outer, kPythonRun, static_cast<std::int32_t>(run.python), run.frames);
}

MixedStacks* MixedStacks::mine() noexcept {
  return mixed_stacks.room_ != 0 ? &mixed_stacks : make_mine();
}

MixedStacks* MixedStacks::if_made() noexcept {
  return mixed_stacks.room_ != 0 ? &mixed_stacks : nullptr;
}

MixedStacks* MixedStacks::make_mine() noexcept {
  MixedStacks& mine = mixed_stacks;
  if (mine.ends_ || !unwind::prepare() || !thread_end.watch(&mine)) return nullptr;
  if (mine.recents_ == nullptr) {
    mine.recents_ = static_cast<Recent*>(base::map_pages(kRecents * sizeof(Recent)));
  }
  return mine.recents_ != nullptr && mine.make_room() ? &mine : nullptr;
}

void MixedStacks::release(void* stacks) noexcept {
  auto& self = *static_cast<MixedStacks*>(stacks);
  self.trail_.release();
  base::unmap_pages(std::min(self.runs_, self.found_), 2 * self.room_ * sizeof(Run));
  base::unmap_pages(self.recents_, kRecents * sizeof(Recent));
  self = {};
  self.ends_ = true;
}

StackId MixedStacks::stack_at(cpython::Asker asker, const unwind::Registers& at,
                              bool exact) noexcept {
  const StackId python = python_stack(asker);
  if (is_truncated(python)) return python;
  found_count_ = 0;
  const bool has_runs =
      python == kEmpty || (walk_in_use() == Walk::fast && collect_runs(asker.state));
  if (!trail_.follow(at, exact, [&](Address sp) noexcept { return place_outside(sp); })) {
    return python;
  }
  name_links();
  if (!has_runs) return unmerged(python);
  const std::size_t valid = place_runs();
  const std::size_t lost = lost_runs();
  if (lost == kNowhere) return unmerged(python);
  const StackId stack = merge(lost == 0 ? valid : 0, lost);
  std::swap(runs_, found_);
  run_count_ = found_count_;
  if (lost != 0 || is_truncated(stack)) trail_.forget(), run_count_ = 0;
  return stack;
}

void MixedStacks::name_links() noexcept {
  for (std::size_t i = trail_.kept(); i < trail_.size(); ++i) {
    unwind::Trail::Link& link = trail_[i];
    if (link.name == kNameless) trail_.set_name(i, modules().name(link.pc));
  }
}

// Into found_, outermost first. False: there is no room for them.
bool MixedStacks::collect_runs(PyThreadState* state) noexcept {
  const StackTable& stacks = store().stacks;
  bool fits = true;
  cpython::RunPlaces places(state);
  PrefixCache::mine()->for_each_run(
      [&](const cpython::Frame* first, StackId inner, StackId outer) noexcept {
        const Address place = first != nullptr ? places.next(first) : 0;
        if (inner == outer) return;  // frames that are not shown
        fits = fits && (found_count_ < room_ || make_room());
        if (!fits) return;
        const std::uint32_t frames = stacks.depth(inner) - stacks.depth(outer);
        found_[found_count_++] = {place, inner, frames, kNowhere};
      });
  std::reverse(found_, found_ + found_count_);
  return fits;
}

// The nearest run whose place lies further out than that.
Address MixedStacks::place_outside(Address sp) const noexcept {
  for (std::size_t i = found_count_; i-- != 0;) {
    if (found_[i].place >= sp) return found_[i].place;
  }
  return 0;
}

// Finds the links of the runs. Links before the one that is returned have notes that are still
// right.
std::size_t MixedStacks::place_runs() noexcept {
  std::size_t same = 0;
  while (same < std::min(run_count_, found_count_) && runs_[same].link < trail_.kept() &&
         runs_[same].place == found_[same].place && runs_[same].python == found_[same].python) {
    found_[same].link = runs_[same].link;
    ++same;
  }
  std::size_t valid = trail_.kept();
  if (same < run_count_) valid = std::min<std::size_t>(valid, runs_[same].link);
  std::size_t at = same != 0 ? found_[same - 1].link + 1 : 0;
  for (std::size_t i = same; i < found_count_; ++i) {
    std::size_t link = at;
    while (link < trail_.size() && !trail_[link].has(found_[i].place)) ++link;
    if (link == trail_.size()) continue;
    found_[i].link = static_cast<std::uint32_t>(link);
    valid = std::min(valid, link);
    at = link + 1;
  }
  return valid;
}

// How many of the outermost runs are beyond the end of the trail; kNowhere: some run has no place
// and cannot be there.
std::size_t MixedStacks::lost_runs() const noexcept {
  std::size_t lost = 0;
  while (lost < found_count_ && found_[lost].link == kNowhere) ++lost;
  for (std::size_t i = lost; i < found_count_; ++i) {
    if (found_[i].link == kNowhere) return kNowhere;
  }
  return lost != 0 && trail_.end() == unwind::End::outermost ? kNowhere : lost;
}

StackId MixedStacks::merge(std::size_t valid, std::size_t lost) noexcept {
  StackId stack = kEmpty;
  if (valid != 0) {
    stack = static_cast<StackId>(trail_[valid - 1].note);
  } else if (trail_.end() != unwind::End::outermost) {
    for (std::size_t i = 0; i < lost; ++i) {
      stack = add(stack, found_[i]);
    }
    stack = add_gap(stack);
  }
  std::size_t run = lost;
  while (run < found_count_ && found_[run].link < valid) ++run;
  for (std::size_t i = valid; i < trail_.size(); ++i) {
    if (trail_[i].gap) [[unlikely]]
      stack = add_gap(stack);
    if (run < found_count_ && found_[run].link == i) {
      stack = add(stack, found_[run]);
      ++run;
    } else {
      stack = add(stack, trail_[i].name);
    }
    trail_[i].note = stack;
  }
  return stack;
}

StackId MixedStacks::unmerged(StackId python) noexcept {
  StackId stack = kEmpty;
  for (std::size_t i = 0; i < trail_.size(); ++i) stack = add(stack, trail_[i].name);
  stack = add(stack, kRemark, static_cast<std::int32_t>(Remark::unmerged));
  trail_.forget();
  run_count_ = 0;
  return add(stack, Run{0, python, store().stacks.depth(python), kNowhere});
}

bool MixedStacks::make_room() noexcept {
  const std::size_t room = room_ != 0 ? room_ * 2 : kFirstRoom;
  auto* larger = static_cast<Run*>(base::map_pages(2 * room * sizeof(Run)));
  if (larger == nullptr) return false;
  if (room_ != 0) {
    std::copy_n(runs_, run_count_, larger);
    std::copy_n(found_, found_count_, larger + room);
    base::unmap_pages(std::min(runs_, found_), 2 * room_ * sizeof(Run));
  }
  runs_ = larger;
  found_ = larger + room;
  room_ = room;
  return true;
}

}  // namespace whence::stacks
