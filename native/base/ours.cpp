// ours.cpp: see ours.h.
#include "base/ours.h"

namespace whence::base {

constinit thread_local Business detail::business = Business::program;

}  // namespace whence::base
