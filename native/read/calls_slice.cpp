// calls_slice.cpp: see calls.h. Where a slice begins and ends, in each thread.
#include <algorithm>

#include "read/calls.h"

namespace whence::read {

// Until the slice begins, everything happens as ever, but nothing is told.
bool CallReader::cross(ThreadCalls& thread, std::uint64_t time) {
  if (thread.over) {
    pending_ = false;
    return true;
  }
  const std::uint64_t edge = thread.begun ? to_ : from_;
  if (time < edge) return false;
  if (thread.next_fact < edge && apply_facts(thread, edge - 1)) return true;
  if (!thread.begun) {
    begin_slice(thread);
    return true;
  }
  thread.over = true;
  thread.now = std::max(thread.now, to_);
  thread.open.forget_all_beyond();
  plan_.thread = &thread;
  plan_.keep = 0;
  plan_.left = Left::cut;
  plan_.nodes.clear();
  return true;
}

void CallReader::begin_slice(ThreadCalls& thread) {
  thread.begun = true;
  thread.open.begin_at(slice_.from);
  if (entries_ && !thread.open.empty()) telling_ = {&thread, 0};
}

CallReader::Got CallReader::tell_open(Call& call) {
  ThreadCalls& thread = *telling_.thread;
  thread.open.describe(telling_.next, call);
  call.thread = thread.id;
  if (++telling_.next == thread.open.size()) telling_.thread = nullptr;
  return Got::entered;
}

}  // namespace whence::read
