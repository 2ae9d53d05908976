// generators.cpp: see generators.h.
#include "read/generators.h"

#include <algorithm>
#include <tuple>

namespace whence::read {
namespace {

// So many are kept, finished or not, before it is worth the time to look for finished ones.
constexpr std::size_t kFirstSweep = 1 << 17;

}  // namespace

Generators::Generators(const Names& names, Budget& budget, std::uint64_t base)
    : budget_(budget), runs_(names.task_runs()), sweep_at_(kFirstSweep), instances_(base) {
  std::sort(runs_.begin(), runs_.end(), [](const TaskRun& a, const TaskRun& b) {
    return std::tie(a.generator, a.time, a.order) < std::tie(b.generator, b.time, b.order);
  });
  for (std::uint32_t i = 0; i < runs_.size(); ++i) {
    if (i != 0 && runs_[i].generator == runs_[i - 1].generator) {
      ++slots_[runs_[i].generator].runs_end;
    } else if (budget_.afford(kEntryCost)) {
      Slot& slot = slots_[runs_[i].generator];
      slot.runs = i;
      slot.runs_end = i + 1;
    } else {
      break;
    }
  }
}

Activation Generators::call(std::uint64_t generator, std::uint64_t time) {
  Slot* found = slot(generator);
  if (found == nullptr) return {0, 0};
  if (found->instance != 0) {
    found->before = found->last_seen;
    found->has_before = true;
  }
  found->instance = ++instances_;
  found->last_seen = time;
  return enter(*found, time);
}

Activation Generators::resume(std::uint64_t generator, std::uint64_t time) {
  Slot* found = slot(generator);
  if (found == nullptr) return {0, 0};
  if (found->instance == 0) found->instance = ++instances_;
  return enter(*found, time);
}

Activation Generators::enter(Slot& slot, std::uint64_t time) const noexcept {
  slot.finished = false;
  slot.last_seen = std::max(slot.last_seen, time);
  return {slot.instance, slot.runs != slot.runs_end ? task_of(slot, time) : 0};
}

// What was said of the number while the instance before this one was still seen is not about this
// one. Threads are read one after the other: what was read before may have happened later.
std::uint64_t Generators::task_of(const Slot& slot, std::uint64_t time) const noexcept {
  const auto begin = runs_.begin() + slot.runs;
  const auto after =
      std::upper_bound(begin, runs_.begin() + slot.runs_end, time,
                       [](std::uint64_t t, const TaskRun& run) { return t < run.time; });
  if (after == begin) return 0;
  const TaskRun& newest = *(after - 1);
  const bool had_before = slot.has_before && slot.before <= time;
  return had_before && newest.time <= slot.before ? 0 : newest.task;
}

void Generators::leave(std::uint64_t generator, std::uint64_t instance, std::uint64_t time,
                       bool finished) {
  const auto found = slots_.find(generator);
  if (found == slots_.end() || found->second.instance != instance) return;
  found->second.last_seen = std::max(found->second.last_seen, time);
  found->second.finished = finished;
}

Generators::Slot* Generators::slot(std::uint64_t generator) {
  const auto found = slots_.find(generator);
  if (found != slots_.end()) return &found->second;
  if (slots_.size() >= sweep_at_) forget_finished();
  if (!budget_.afford(kEntryCost)) return nullptr;
  return &slots_[generator];
}

// A finished one is resumed only by events of another thread that are read late.
void Generators::forget_finished() {
  const std::size_t forgotten = std::erase_if(slots_, [](const auto& item) {
    return item.second.finished && item.second.runs == item.second.runs_end;
  });
  budget_.give_back(forgotten * kEntryCost);
  sweep_at_ = std::max(kFirstSweep, 2 * slots_.size());
}

}  // namespace whence::read
