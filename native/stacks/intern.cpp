// intern.cpp: see intern.h.
#include "stacks/intern.h"

#include "base/line_table.h"

namespace whence::stacks {

StackId intern_new_frame(StackId caller, CodeId code, std::int32_t offset) noexcept {
  Store& all = store();
  const CodeFacts facts = all.codes.facts(code);
  const std::int32_t place = base::first_at_same_place(facts.line_table, facts.first_line, offset);
  const StackId id = all.stacks.intern(caller, code, place);
  if (place != offset) all.stacks.add_alias(caller, code, offset, id);
  return id;
}

}  // namespace whence::stacks
