// capture.cpp: see capture.h.
#include "stacks/capture.h"

#include <atomic>

#include "cpython/frames.h"
#include "cpython/frames_public.h"
#include "cpython/self_test.h"
#include "stacks/frame_list.h"
#include "stacks/intern.h"
#include "stacks/prefix_cache.h"
#include "stacks/store.h"

namespace whence::stacks {
namespace {

std::atomic<Walk> walk_now = Walk::by_public_api;
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
  walk_now.store(Walk::by_public_api, std::memory_order_relaxed);
}

const char* use_fast_walk_if_trusted() noexcept {
  const char* failure = cpython::self_test(cpython::kLayout);
  if (PyErr_Occurred()) return failure;
  trusted.store(failure == nullptr, std::memory_order_relaxed);
  walk_now.store(failure == nullptr ? Walk::fast : Walk::by_public_api, std::memory_order_relaxed);
  return failure;
}

bool frames_are_trusted() noexcept {
  return trusted.load(std::memory_order_relaxed);
}

Walk walk_in_use() noexcept {
  return walk_now.load(std::memory_order_relaxed);
}

StackId capture(PyThreadState* state, std::uint32_t skip, std::uint32_t limit) noexcept {
  if (state == nullptr) return kEmpty;
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

}  // namespace whence::stacks
