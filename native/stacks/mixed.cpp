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
  base::unmap_pages(self.runs_, 2 * self.room_ * sizeof(Run));
  base::unmap_pages(self.recents_, kRecents * sizeof(Recent));
  self = {};
  self.ends_ = true;
}

// So many runs are as they were, and so many found ones come after them.
inline void MixedStacks::take_runs(std::size_t kept, std::size_t found) noexcept {
  const std::size_t count = kept + found;
  const auto found_at = [&](std::size_t i) -> const Run& { return runs_[room_ + count - 1 - i]; };
  const auto is_same = [&](std::size_t i) {
    return runs_[i].place == found_at(i).place && runs_[i].python == found_at(i).python &&
           runs_[i].frames == found_at(i).frames;
  };
  for (same_ = kept; same_ < std::min(run_count_, count) && is_same(same_); ++same_) {
    runs_[same_].number = found_at(same_).number;
  }
  changed_ = same_ < run_count_ ? runs_[same_].link : kNowhere;
  for (std::size_t i = same_; i < count; ++i) runs_[i] = found_at(i);
  run_count_ = count;
}

StackId MixedStacks::stack_at(cpython::Asker asker, const unwind::Registers& at,
                              bool exact) noexcept {
  const StackId python = python_stack(asker);
  if (is_truncated(python)) return python;
  bool has_runs = true;
  if (python == kEmpty) {
    take_runs(0, 0);
  } else {
    has_runs = walk_in_use() == Walk::fast && collect_runs(asker.state);
  }
  if (!has_runs) run_count_ = 0;
  if (!trail_.follow(at, exact, [&](Address sp) noexcept { return place_outside(sp); })) {
    run_count_ = 0;
    return python;
  }
  name_links();
  std::size_t valid = 0;
  if (!has_runs || !place_runs(valid)) return unmerged(python);
  const StackId stack = merge(valid);
  if (is_truncated(stack)) trail_.forget(), run_count_ = 0;
  return stack;
}

void MixedStacks::name_links() noexcept {
  for (std::size_t i = trail_.kept(); i < trail_.size(); ++i) {
    unwind::Trail::Link& link = trail_[i];
    if (link.name == kNameless) trail_.set_name(i, modules().name(link.pc));
  }
}

// Those that may have changed are collected behind the others, innermost first. False: there is no
// room for them.
bool MixedStacks::collect_runs(PyThreadState* state) noexcept {
  const StackTable& stacks = store().stacks;
  PrefixCache& cache = *PrefixCache::mine();
  const std::size_t settled = cache.settled_runs();
  std::size_t kept = run_count_;
  while (kept != 0 && runs_[kept - 1].number >= settled) --kept;
  // Between two frames that wait, one called from the other, nothing native has moved either. What
  // is outside the outermost one may be another stack: greenlets copy them.
  if (kept > lost_) trail_.trust(runs_[lost_].link, runs_[kept - 1].link);
  std::size_t found = 0;
  bool fits = true;
  cpython::RunPlaces places(state);
  cache.for_each_run(kept != 0 ? settled : 0, [&](std::size_t number, const cpython::Frame* first,
                                                  StackId inner, StackId outer) noexcept {
    const Address place = first != nullptr ? places.next(first) : 0;
    if (inner == outer) return;  // frames that are not shown
    fits = fits && (kept + found < room_ || make_room());
    if (!fits) return;
    const std::uint32_t frames = stacks.depth(inner) - stacks.depth(outer);
    runs_[room_ + found++] = {place, inner, frames, kNowhere, static_cast<std::uint32_t>(number)};
  });
  if (fits) take_runs(kept, found);
  return fits;
}

// The nearest run whose place lies further out than that.
Address MixedStacks::place_outside(Address sp) const noexcept {
  for (std::size_t i = run_count_; i-- != 0;) {
    if (runs_[i].place >= sp) return runs_[i].place;
  }
  return 0;
}

// Finds the links of the runs. Links before `valid` have notes that are still right. False: some
// run has no place and cannot be beyond the end of the trail.
bool MixedStacks::place_runs(std::size_t& valid) noexcept {
  const std::size_t trail_kept = trail_.kept();
  const std::size_t lost_before = lost_;
  valid = std::min<std::size_t>(trail_kept, changed_);
  std::size_t placed = same_;  // runs that are where they were
  if (trail_kept == 0 || same_ < lost_before) {
    valid = placed = lost_ = 0;
  } else {
    while (placed > lost_ && runs_[placed - 1].link >= trail_kept) --placed;
  }
  // From the innermost on: each is a few links further out than the last, and for those that are
  // beyond the end there are few left to look at.
  const std::size_t begin = placed > lost_ ? runs_[placed - 1].link + 1 : 0;
  std::size_t end = trail_.size();
  std::size_t missing = 0;
  for (std::size_t i = run_count_; i-- > placed;) {
    std::size_t link = end;
    while (link > begin && !trail_[link - 1].has(runs_[i].place)) --link;
    if (link == begin) {
      runs_[i].link = kNowhere;
      ++missing;
      continue;
    }
    if (missing != 0) return false;
    end = link - 1;
    runs_[i].link = static_cast<std::uint32_t>(end);
  }
  valid = std::min(valid, end);
  if (missing != 0 && placed > lost_) return false;
  lost_ += missing;
  if (lost_ != lost_before) valid = 0;
  return lost_ == 0 || trail_.end() != unwind::End::outermost;
}

StackId MixedStacks::merge(std::size_t valid) noexcept {
  StackId stack = kEmpty;
  if (valid != 0) {
    stack = static_cast<StackId>(trail_[valid - 1].note);
  } else if (trail_.end() != unwind::End::outermost) {
    for (std::size_t i = 0; i < lost_; ++i) {
      stack = add(stack, runs_[i]);
    }
    stack = add_gap(stack);
  }
  std::size_t run = run_count_;
  while (run != lost_ && runs_[run - 1].link >= valid) --run;
  for (std::size_t i = valid; i < trail_.size(); ++i) {
    if (trail_[i].gap) [[unlikely]]
      stack = add_gap(stack);
    if (run < run_count_ && runs_[run].link == i) {
      stack = add(stack, runs_[run]);
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
  return add(stack, Run{0, python, store().stacks.depth(python), kNowhere, 0});
}

bool MixedStacks::make_room() noexcept {
  const std::size_t room = room_ != 0 ? room_ * 2 : kFirstRoom;
  auto* larger = static_cast<Run*>(base::map_pages(2 * room * sizeof(Run)));
  if (larger == nullptr) return false;
  if (room_ != 0) {
    std::copy_n(runs_, room_, larger);
    std::copy_n(runs_ + room_, room_, larger + room);
    base::unmap_pages(runs_, 2 * room_ * sizeof(Run));
  }
  runs_ = larger;
  room_ = room;
  return true;
}

}  // namespace whence::stacks
