// store.h: the process's one stack table and one code registry.
//
// Threads: any; each part says who may enter it.
// Allocates: never; both are zero bytes until they are used, and are never destroyed, so that
// threads and destructors that outlive the interpreter find them whole.
// Fails by: it cannot.
#pragma once

#include "stacks/code_registry.h"
#include "stacks/stack_table.h"

namespace whence::stacks {

struct Store {
  StackTable stacks;
  CodeRegistry codes;
};

namespace detail {
extern Store the_store;
}

[[nodiscard]] inline Store& store() noexcept {
  return detail::the_store;
}

}  // namespace whence::stacks
