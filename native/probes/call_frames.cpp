// call_frames.cpp: see call_frames.h.
#include "probes/call_frames.h"

#include "cpython/thread.h"
#include "format/records/frames.h"
#include "probes/call_codes.h"
#include "probes/write_stack.h"
#include "stacks/frame_list.h"
#include "stacks/intern.h"
#include "store/write.h"

namespace whence::probes {

using cpython::Frame;

const Frame* nearest_recorded(const Frame* frame, std::uint32_t recording) noexcept {
  for (; frame != nullptr; frame = cpython::previous(frame)) {
    if (cpython::hidden(frame)) continue;
    PyCodeObject* code = cpython::code_of(cpython::executable(frame));
    if (is_recorded(decided_entry(code, recording), recording)) break;
  }
  return frame;
}

bool find_recorded(FoundFrames& found, const Frame* frame, std::uint32_t recording) noexcept {
  for (; frame != nullptr; frame = cpython::previous(frame)) {
    if (cpython::hidden(frame)) continue;
    PyCodeObject* code = cpython::code_of(cpython::executable(frame));
    const stacks::CodeEntry* entry = decided_entry(code, recording);
    if (!is_recorded(entry, recording)) continue;
    const FoundFrame one = {reinterpret_cast<std::uintptr_t>(frame), id_of(entry),
                            cpython::is_generator(frame)};
    if (!found.add(one)) return false;
  }
  return true;
}

namespace {

// With the places in the code where the frames are: they are alive.
stacks::StackId stack_of(const Frame* frame, std::uint32_t recording) noexcept {
  stacks::FrameList frames;
  for (; frame != nullptr; frame = cpython::previous(frame)) {
    if (cpython::hidden(frame)) continue;
    PyCodeObject* code = cpython::code_of(cpython::executable(frame));
    const stacks::CodeEntry* entry = decided_entry(code, recording);
    if (!is_recorded(entry, recording)) continue;
    const auto offset = cpython::offset_in(code, cpython::instruction(frame));
    if (!frames.add({id_of(entry), offset})) break;
  }
  stacks::StackId stack = stacks::kEmpty;
  for (std::size_t i = frames.size(); i-- != 0;) {
    const auto next = stacks::intern_frame(stack, frames[i].code, frames[i].offset);
    if (stacks::is_truncated(next)) break;
    stack = next;
    write_stack_node(recording, stack);
  }
  return stack;
}

}  // namespace

void tell_frames_of_all(std::uint32_t recording) noexcept {
  cpython::for_each_thread([&](const Frame* innermost, std::uint32_t os_id) {
    const stacks::StackId stack = stack_of(innermost, recording);
    const std::uint32_t thread = store::store().thread_number(os_id);
    if (thread == 0 || stack == stacks::kEmpty) return;
    store::write_fact<format::ThreadFrames>(thread, stack);
    FoundFrames found;
    if (!find_recorded(found, innermost, recording)) return;
    for (std::size_t i = found.size(); i-- != 0;) {
      if (!found[i].generator) continue;
      store::write_fact<format::ThreadGenerator>(thread, found.size() - i, found[i].address >> 4);
    }
  });
}

}  // namespace whence::probes
