// test_more_stack.cpp: what is called on a further segment of stack, and ways back from there.
#include <cstdint>

#include "base/more_stack.h"
#include "base/stack_segment.h"
#include "check.h"

using whence::base::innermost_segment;
using whence::base::MoreStack;

#if !defined(__SANITIZE_ADDRESS__)  // an exception from one stack to another is beyond it
namespace {

struct Thrown {};

void* here(void* place) {
  *static_cast<std::uintptr_t*>(place) =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return place;
}

[[nodiscard]] std::uintptr_t called_at(MoreStack& stack) {
  std::uintptr_t place = 0;
  CHECK(stack.call(here, &place) == &place);
  return place;
}

}  // namespace

TEST(an_exception_leaves_a_segment) {
  MoreStack stack;
  stack.prepare();
  const std::uintptr_t before = called_at(stack);
  for (int i = 0; i < 3; ++i) {
    bool caught = false;
    try {
      stack.call([](void*) -> void* { throw Thrown{}; }, nullptr);
    } catch (const Thrown&) {
      caught = true;
    }
    CHECK(caught && innermost_segment() == nullptr);
    CHECK(called_at(stack) == before);  // and not on one further in
  }
  stack.release();
}
#endif

TEST(a_guard_page_is_no_stack) {
  MoreStack stack;
  stack.prepare();
  const auto look = [](void*) -> void* {
    const auto* segment = innermost_segment();
    const auto* frame = static_cast<const char*>(__builtin_frame_address(0));
    CHECK(segment != nullptr && segment->begin < frame && frame < segment->end);
    *const_cast<volatile char*>(segment->begin) = 1;  // the first byte is there
    return nullptr;
  };
  CHECK(stack.call(look, nullptr) == nullptr);
  stack.release();
}
