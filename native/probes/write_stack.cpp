// write_stack.cpp: see write_stack.h.
#include "probes/write_stack.h"

#include "format/records/code.h"
#include "stacks/store.h"
#include "store/store.h"

namespace whence::probes {

void write_code(std::uint32_t recording, const stacks::CodeEntry& entry) noexcept {
  store::Store& store = store::store();
  const std::uint64_t name = store.string(recording, entry.name);
  const std::uint64_t qualname = store.string(recording, entry.qualname);
  const std::uint64_t filename = store.string(recording, entry.filename);
  const std::uint64_t line_table = store.string(recording, entry.line_table);
  store.write_metadata(format::kLongestCompact, [&](std::uint8_t* out, format::Deltas&) {
    return format::Code::encode(out, entry.id, name, qualname, filename, entry.first_line,
                                line_table);
  });
}

void write_stack_node(std::uint32_t recording, stacks::StackId stack) noexcept {
  if (stack == stacks::kEmpty || stacks::is_truncated(stack)) return;
  const stacks::Node& node = stacks::store().stacks.node(stack);
  store::store().write_stack(recording, stack, node.parent, node.code, node.offset);
}

}  // namespace whence::probes
