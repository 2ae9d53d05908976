// write_stack.cpp: see write_stack.h.
#include "probes/write_stack.h"

#include <algorithm>
#include <atomic>

#include "base/segments.h"
#include "format/records/code.h"
#include "format/records/native.h"
#include "stacks/modules.h"
#include "stacks/store.h"
#include "store/store.h"

namespace whence::probes {

namespace {

// By code: in which recording it was written. Two threads that do so at the same time do no harm.
base::Segments<std::atomic<std::uint32_t>, 10> written_codes;
base::Segments<std::atomic<std::uint32_t>, 6> written_modules;  // the same

}  // namespace

void write_code(std::uint32_t recording, const stacks::CodeEntry& entry) noexcept {
  std::atomic<std::uint32_t>* written = written_codes.ensure(entry.id);
  if (written != nullptr && written->load(std::memory_order_relaxed) == recording) return;
  store::Store& store = store::store();
  const std::uint64_t name = store.string(recording, entry.name);
  const std::uint64_t qualname = store.string(recording, entry.qualname);
  const std::uint64_t filename = store.string(recording, entry.filename);
  const std::uint64_t line_table = store.string(recording, entry.line_table);
  store.write_metadata(format::kLongestCompact, [&](std::uint8_t* out, format::Deltas&) {
    return format::Code::encode(out, entry.id, name, qualname, filename, entry.first_line,
                                line_table);
  });
  if (written != nullptr) written->store(recording, std::memory_order_relaxed);
}

void write_module(std::uint32_t recording, std::uint32_t module) noexcept {
  if (module == 0) return;  // a remark
  std::atomic<std::uint32_t>* written = written_modules.ensure(module);
  if (written != nullptr && written->load(std::memory_order_relaxed) == recording) return;
  const stacks::Module& known = stacks::modules()[module];
  const std::uint64_t path = store::store().string(recording, known.path);
  const std::uint64_t build_id = store::store().string(recording, known.build_id);
  store::store().write_metadata(format::kLongestCompact, [&](std::uint8_t* out, format::Deltas&) {
    return format::Module::encode(out, module, path, build_id);
  });
  if (written != nullptr) written->store(recording, std::memory_order_relaxed);
}

bool is_written(std::uint32_t recording, stacks::CodeId code) noexcept {
  return written_codes.has(code) &&
         written_codes.at(code)->load(std::memory_order_relaxed) == recording;
}

void write_stack_node(std::uint32_t recording, stacks::StackId stack) noexcept {
  if (stack == stacks::kEmpty || stacks::is_truncated(stack)) return;
  const stacks::Node& node = stacks::store().stacks.node(stack);
  if (stacks::is_python_run(node.code)) {
    return store::store().write_python_run(recording, stack, node.parent,
                                           static_cast<stacks::StackId>(node.offset));
  }
  if (stacks::is_native(node.code)) {
    return store::store().write_native_stack(recording, stack, node.parent,
                                             stacks::module_of(node.code),
                                             static_cast<std::uint32_t>(node.offset));
  }
  store::store().write_stack(recording, stack, node.parent, node.code, node.offset);
}

// From the outermost frame that is not written inwards, in pieces: a node knows only its caller.
void write_stack(std::uint32_t recording, stacks::StackId stack) noexcept {
  constexpr std::size_t kPiece = 256;
  const stacks::Store& known = stacks::store();
  stack = stacks::whole_part(stack);
  while (stack != stacks::kEmpty && !store::store().has_stack(recording, stack)) {
    stacks::StackId piece[kPiece];  // the outermost ones, in a circle
    std::size_t count = 0;
    for (stacks::StackId id = stack;
         id != stacks::kEmpty && !store::store().has_stack(recording, id);
         id = known.stacks.node(id).parent) {
      piece[count++ % kPiece] = id;
    }
    for (std::size_t left = std::min(count, kPiece); left != 0; --left) {
      const stacks::StackId id = piece[--count % kPiece];
      const stacks::CodeId code = known.stacks.node(id).code;
      if (stacks::is_python_run(code)) {
        write_stack(recording, static_cast<stacks::StackId>(known.stacks.node(id).offset));
      } else if (stacks::is_native(code)) {
        write_module(recording, stacks::module_of(code));
      } else if (code != stacks::kNoCode) {
        write_code(recording, known.codes.entry(code));
      }
      write_stack_node(recording, id);
      if (!store::store().has_stack(recording, id)) return;  // the recording is not on any more
    }
  }
}

}  // namespace whence::probes
