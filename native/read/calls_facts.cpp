// calls_facts.cpp: see calls.h. Which frames are open, as records say it, and when everything ends.
#include <algorithm>
#include <limits>
#include <tuple>

#include "read/calls.h"

namespace whence::read {

void CallReader::sort_facts() {
  std::sort(offs_.begin(), offs_.end());
  for (ThreadFramesEntry& entry : frames_) entry.thread = static_cast<std::uint32_t>(entry.thread);
  std::sort(frames_.begin(), frames_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.thread, a.time, a.order) < std::tie(b.thread, b.time, b.order);
  });
  for (std::size_t begin = 0, end; begin < frames_.size(); begin = end) {
    end = begin + 1;
    while (end < frames_.size() && frames_[end].thread == frames_[begin].thread) ++end;
    ThreadCalls* made = thread(static_cast<std::uint32_t>(frames_[begin].thread));
    if (made == nullptr) continue;
    made->next_frames = begin;
    made->frames_end = end;
    made->next_fact = std::min(made->next_fact, frames_[begin].time);
  }
}

// Frames count from their time on, the end of recording calls only for what comes after it. False:
// there is nothing (more) to be done before a record at `until` can be taken.
bool CallReader::apply_facts(ThreadCalls& thread, std::uint64_t until) {
  const bool has_frames =
      thread.next_frames < thread.frames_end && frames_[thread.next_frames].time <= until;
  const std::uint64_t frames_time = has_frames ? frames_[thread.next_frames].time : kNever;
  const auto passed = [&](std::uint64_t off) {
    return has_frames ? off <= frames_time : off < until;
  };
  const bool works = thread.work != nullptr && next_work(thread) != kNever;
  if (thread.open.empty() && thread.open.beyond() == 0 && !works) {
    // nothing to cut: go on to the last
    const auto begin = offs_.begin() + static_cast<std::ptrdiff_t>(thread.next_off);
    const auto next = has_frames ? std::upper_bound(begin, offs_.end(), frames_time)
                                 : std::lower_bound(begin, offs_.end(), until);
    thread.next_off = static_cast<std::size_t>(next - offs_.begin());
  }
  const bool is_off = thread.next_off < offs_.size() && passed(offs_[thread.next_off]);
  const std::uint64_t off_time = is_off ? offs_[thread.next_off] : kNever;
  if (works && apply_work(thread, std::min({until, frames_time, off_time}))) return true;
  if (is_off) {
    thread.now = std::max(thread.now, offs_[thread.next_off++]);
    thread.open.forget_all_beyond();
    plan_.thread = &thread;
    plan_.keep = 0;
    plan_.left = Left::cut;
    return true;
  }
  if (has_frames) {
    thread.now = std::max(thread.now, frames_time);
    const ThreadFramesEntry& entry = frames_[thread.next_frames++];
    if (entry.level == 0) {
      reconcile(thread, entry.what);
    } else {
      name_generator(thread, entry.level, entry.what);
    }
    return true;
  }
  const bool more_frames = thread.next_frames < thread.frames_end;
  thread.next_fact = std::min(thread.next_off < offs_.size() ? offs_[thread.next_off] : kNever,
                              more_frames ? frames_[thread.next_frames].time : kNever);
  if (thread.work != nullptr) thread.next_fact = std::min(thread.next_fact, next_work(thread));
  return false;
}

// Plans what makes the open frames those of the stack. Each frame remembers the stack that it was
// found to agree with: from there on outwards, nothing has to be compared.
void CallReader::reconcile(ThreadCalls& thread, std::uint64_t stack) {
  OpenCalls& open = thread.open;
  const auto depth = paths_.depth(stack);
  if (!depth.has_value() || steps_left_ == 0) {
    ++stacks_left_out_;
    return;
  }
  open.forget_all_beyond();
  plan_.nodes.clear();
  std::size_t level = *depth;
  std::uint64_t node = stack;
  const auto outwards = [&] {
    plan_.nodes.push_back(node);
    node = names_.stack(node)->parent;
    --level;
    steps_left_ -= steps_left_ != 0;
  };
  while (level > open.frames()) outwards();

  // From here on, `place` is behind the open frame at `level`.
  std::size_t place = open.size(), frames = open.frames();
  const auto skip_native = [&] {
    if (place != 0) place = open.frame_at(place - 1);
  };
  for (skip_native(); frames > level; skip_native()) {
    --place;
    --frames;
  }
  bool agrees = *depth == open.frames();
  std::size_t keep = place, agreed = level;  // so many frames, in so many calls
  while (level != 0) {
    OpenCall& frame = open[place - 1];
    if (frame.node == node) break;
    const bool same = frame.what == names_.stack(node)->code();
    frame.node =
        node <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(node) : 0;
    outwards();
    --place;
    skip_native();
    if (same) continue;
    agrees = false;
    keep = place;
    agreed = level;
  }
  if (agrees) {
    plan_.nodes.clear();
    return;
  }
  plan_.nodes.resize(*depth - agreed);
  plan_.thread = &thread;
  plan_.keep = keep;
  plan_.left = Left::gone;
}

// The open frame at that level, counted from the outermost, belongs to this generator, and what is
// open inside it to its task.
void CallReader::name_generator(ThreadCalls& thread, std::uint64_t level, std::uint64_t number) {
  OpenCalls& open = thread.open;
  if (open.beyond() != 0 || level == 0 || level > open.frames()) return;
  std::size_t place = open.size();
  for (std::size_t frames = open.frames() + 1; frames != level; steps_left_ -= steps_left_ != 0) {
    if (steps_left_ == 0) {
      ++stacks_left_out_;
      return;
    }
    place = open.frame_at(place - 1) - 1;
    --frames;
  }
  OpenCall& frame = open[place];
  if (frame.instance != 0) return;
  const Activation activation = generators_.resume(number, thread.now);
  frame.generator = number;
  frame.instance = activation.instance;
  if (activation.task == 0) return;
  for (; place < open.size(); ++place) open[place].task = activation.task;
}

// One call of the plan: the innermost that is to end, or the next that is found open.
CallReader::Got CallReader::follow_plan(Call& call) {
  if (plan_.work != nullptr) return begin_work(call);
  ThreadCalls& thread = *plan_.thread;
  if (thread.open.size() > plan_.keep) {
    end_top(thread, plan_.left, call);
    return thread.begun ? Got::left : Got::nothing;
  }
  if (plan_.nodes.empty()) {
    plan_.thread = nullptr;
    return Got::nothing;
  }
  const std::uint64_t node = plan_.nodes.back();
  plan_.nodes.pop_back();
  plan_.keep = std::numeric_limits<std::size_t>::max();
  const auto known =
      node <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(node) : 0;
  const std::uint64_t code = names_.stack(node)->code();
  return enter(thread, {0, 0, code, 0, 0, 0, 0, known, Entered::open, false, false}, call);
}

// After the last record, thread by thread.
CallReader::Got CallReader::finish() {
  if (ending_.empty()) return Got::end;
  ThreadCalls& thread = *ending_.back();
  if (thread.next_frames < thread.frames_end && frames_[thread.next_frames].time < stop_ &&
      !thread.over) {
    const std::uint64_t last = std::min(frames_[thread.frames_end - 1].time, stop_);
    if (!cross(thread, last)) static_cast<void>(apply_facts(thread, last));
    return Got::nothing;
  }
  const bool works = thread.work != nullptr && next_work(thread) != kNever;
  if ((thread.open.empty() && !works) || thread.over) {
    ending_.pop_back();
    return Got::nothing;
  }
  const std::uint64_t end = std::max(thread.now, end_of(thread));
  if (cross(thread, end)) return Got::nothing;
  if (works && apply_facts(thread, end)) return Got::nothing;
  if (!thread.begun || thread.open.empty()) {  // it ended before the slice begins, or is done
    ending_.pop_back();
    return Got::nothing;
  }
  thread.now = end;
  thread.over = true;
  plan_.thread = &thread;
  plan_.keep = 0;
  plan_.left = Left::cut;
  plan_.nodes.clear();
  return Got::nothing;
}

// The end of whatever is still open: of recording calls, of the thread, of the recording, or of
// what was read of it.
std::uint64_t CallReader::end_of(const ThreadCalls& thread) const noexcept {
  std::uint64_t end = thread.next_off < offs_.size() ? offs_[thread.next_off] : kNever;
  const ThreadEntry* entry = names_.thread(thread.id);
  if (entry != nullptr) end = std::min(end, entry->end_ticks.value_or(kNever));
  end = std::min(end, stop_);
  if (end != kNever) return end;
  return source_.closed() ? source_.header().end_ticks : thread.now;
}

}  // namespace whence::read
