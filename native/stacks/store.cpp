// store.cpp: see store.h.
#include "stacks/store.h"

#include <type_traits>

namespace whence::stacks {

static_assert(std::is_trivially_destructible_v<Store>);

namespace detail {
constinit Store the_store;
}

}  // namespace whence::stacks
