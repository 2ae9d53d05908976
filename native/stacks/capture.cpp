// capture.cpp: see capture.h.
#include "stacks/capture.h"

#include "base/ours.h"
#include "cpython/frames.h"
#include "cpython/frames_public.h"
#include "cpython/self_test.h"
#include "stacks/frame_list.h"
#include "stacks/intern.h"
#include "stacks/mixed.h"
#include "stacks/mixed_frames.h"
#include "stacks/prefix_cache.h"
#include "stacks/resolve.h"
#include "stacks/store.h"

namespace whence::stacks {

std::atomic<Walk> detail::walk_now = Walk::by_public_api;

namespace {

std::atomic<bool> trusted = false;  // the self-test has found the layout right

// Frames innermost first, as (code id, offset); the table wants them outermost first.
StackId intern_all(const FrameList& frames) noexcept {
  StackId stack = frames.complete() ? kEmpty : kTruncated;
  if (!frames.complete()) store().stacks.count_truncated();
  for (std::size_t i = frames.size(); i-- != 0;) {
    stack = intern_frame(stack, frames[i].code, frames[i].offset);
  }
  return stack;
}

StackId capture_public(PyThreadState* state, std::uint32_t skip, std::uint32_t limit) noexcept {
  FrameList frames;
  const bool whole = cpython::walk_public(state, [&](cpython::PublicFrame frame) {
    if (skip != 0) return --skip, true;
    if (frames.size() >= limit) return false;
    return frames.add({store().codes.id_of(frame.code), frame.offset});
  });
  if (!whole) frames.cut();
  return intern_all(frames);
}

// The walk without a cache: for a limited number of frames, and for threads that are ending.
StackId capture_some(const cpython::Frame* frame, std::uint32_t limit) noexcept {
  FrameList frames;
  for (; frame != nullptr && frames.size() < limit; frame = cpython::previous(frame)) {
    if (cpython::hidden(frame)) continue;
    PyCodeObject* code = cpython::code_of(cpython::executable(frame));
    const auto offset = cpython::offset_in(code, cpython::instruction(frame));
    if (!frames.add({store().codes.id_of(code), offset})) break;
  }
  return intern_all(frames);
}

}  // namespace

void use_public_walk() noexcept {
  detail::walk_now.store(Walk::by_public_api, std::memory_order_relaxed);
}

const char* use_fast_walk_if_trusted() noexcept {
  const char* failure = cpython::self_test(cpython::kLayout);
  if (PyErr_Occurred()) return failure;
  trusted.store(failure == nullptr, std::memory_order_relaxed);
  detail::walk_now.store(failure == nullptr ? Walk::fast : Walk::by_public_api,
                         std::memory_order_relaxed);
  return failure;
}

bool frames_are_trusted() noexcept {
  return trusted.load(std::memory_order_relaxed);
}

StackId capture(PyThreadState* state, std::uint32_t skip, std::uint32_t limit) noexcept {
  if (state == nullptr) return kEmpty;
  const base::Ours ours;  // a signal handler that maps memory asks for no stack meanwhile
  if (walk_in_use() != Walk::fast) [[unlikely]]
    return capture_public(state, skip, limit);
  const cpython::Frame* frame = cpython::innermost(state);
  for (; skip != 0 && frame != nullptr; frame = cpython::previous(frame)) {
    if (!cpython::hidden(frame)) --skip;
  }
  if (frame == nullptr) return kEmpty;
  PrefixCache* cache = limit == kNoLimit ? PrefixCache::mine() : nullptr;
  return cache != nullptr ? cache->stack_at(frame) : capture_some(frame, limit);
}

namespace {

// The stack outside its innermost `skip` Python frames, or native ones if it has no others.
StackId without_innermost(StackId stack, std::uint32_t skip) noexcept {
  StackTable& table = store().stacks;
  const auto run_at_or_outside = [&](StackId id) {
    while (id != kEmpty && is_native(table.node(id).code)) id = table.node(id).parent;
    return id;
  };
  if (skip == 0 || stack == kEmpty) return stack;
  if (run_at_or_outside(stack) == kEmpty) {
    for (; skip != 0 && stack != kEmpty; --skip) stack = table.node(stack).parent;
    return stack;
  }
  for (stack = run_at_or_outside(stack); stack != kEmpty; stack = run_at_or_outside(stack)) {
    const StackId outside = table.node(stack).parent;
    PythonRun run = python_run(table, stack);
    std::uint32_t frames = table.depth(run.inner) - table.depth(run.outer);
    for (; skip != 0 && frames != 0; --skip, --frames) run.inner = table.node(run.inner).parent;
    if (frames != 0) {
      return table.intern(outside, kPythonRun, static_cast<std::int32_t>(run.inner), frames);
    }
    stack = outside;
    if (skip == 0) return stack;
  }
  return kEmpty;
}

// As frames that stand for themselves: the rest of a run would mean another stack.
StackId innermost_of(StackId stack, std::uint32_t limit) noexcept {
  StackTable& table = store().stacks;
  if (table.depth(stack) <= limit) return stack;
  FrameList frames;
  for_each_frame(stack, [&](StackId id) {
    if (frames.size() < limit) frames.add({table.node(id).code, table.node(id).offset});
  });
  StackId kept = frames.complete() ? kEmpty : kTruncated;
  for (std::size_t i = frames.size(); i-- != 0 && !is_truncated(kept);) {
    kept = table.intern(kept, frames[i].code, frames[i].offset);
  }
  return kept;
}

}  // namespace

StackId capture_mixed(cpython::Asker asker, const void* frame, std::uint32_t skip,
                      std::uint32_t limit) noexcept {
  const base::Ours ours;
  MixedStacks* mine = MixedStacks::mine();
  if (mine == nullptr) return capture(asker.attached ? asker.state : nullptr, skip, limit);
  const StackId stack = frame != nullptr && unwind::kEndsAtFramePointer
                            ? mine->stack_at(asker, unwind::registers_outside(frame), false)
                            : mine->stack_at(asker, unwind::registers_here(), true);
  if ((skip == 0 && limit == kNoLimit) || is_truncated(stack)) return stack;
  return innermost_of(without_innermost(stack, skip), limit);
}

}  // namespace whence::stacks
