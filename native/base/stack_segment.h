// stack_segment.h: further pieces of stack that this thread is on, for whoever walks its frames.
//
// Threads: each its own. Allocates: never. Fails by: it cannot.
#pragma once

namespace whence::base {

struct StackSegment {
  const char* begin;
  const char* end;
  const StackSegment* outer;
};

namespace detail {
[[gnu::tls_model("initial-exec")]] extern thread_local constinit const StackSegment* stack_segment;
}

[[nodiscard]] inline const StackSegment* innermost_segment() noexcept {
  return detail::stack_segment;
}

// While it lives, this thread is on that piece.
class OnSegment {
 public:
  OnSegment(const char* begin, const char* end) noexcept
      : segment_{begin, end, detail::stack_segment} {
    detail::stack_segment = &segment_;
  }
  ~OnSegment() { detail::stack_segment = segment_.outer; }
  OnSegment(const OnSegment&) = delete;
  OnSegment& operator=(const OnSegment&) = delete;

 private:
  StackSegment segment_;
};

}  // namespace whence::base
