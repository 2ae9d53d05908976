// more_stack.cpp: see more_stack.h.
#include "base/more_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/own_stack.h"
#include "base/stack_segment.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

// void* whence_call_on_stack(void* top, void* (*body)(void*), void* argument)
#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
    .hidden whence_call_on_stack
    .globl whence_call_on_stack
    .type whence_call_on_stack, @function
whence_call_on_stack:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq %rdi, %rsp
    movq %rdx, %rdi
    callq *%rsi
    movq %rbp, %rsp
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size whence_call_on_stack, .-whence_call_on_stack
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .p2align 2
    .hidden whence_call_on_stack
    .globl whence_call_on_stack
    .type whence_call_on_stack, %function
whence_call_on_stack:
    .cfi_startproc
    hint #25
    .cfi_negate_ra_state
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    mov x29, sp
    .cfi_def_cfa_register x29
    mov sp, x0
    mov x0, x2
    blr x1
    mov sp, x29
    .cfi_def_cfa_register sp
    ldp x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    hint #29
    .cfi_negate_ra_state
    ret
    .cfi_endproc
    .size whence_call_on_stack, .-whence_call_on_stack
)");
#else
#error "no way to switch stacks on this processor"
#endif

extern "C" void* whence_call_on_stack(void* top, void* (*body)(void*), void* argument);

namespace whence::base {

constinit thread_local const StackSegment* detail::stack_segment = nullptr;

namespace {

constexpr std::size_t kSmallest = 256 * 1024;
constexpr std::size_t kLargest = 8 * 1024 * 1024;

// What is left for C code when Python code goes to a segment: a quarter of the stack, or more of a
// small one.
std::size_t margin_of(std::size_t size) noexcept {
  return std::max(size / 4, std::min(size / 2, kSmallest));
}

std::size_t page() noexcept {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

// At the high end of its own mapping, above the stack.
struct alignas(16) MoreStack::Segment {
  Segment* outer;
  Segment* inner;
  std::size_t size;  // of the mapping

  [[nodiscard]] char* mapping() noexcept {
    return reinterpret_cast<char*>(this) + sizeof(Segment) - size;
  }
};

// To where it was.
struct MoreStack::Back {
  MoreStack& stack;
  Segment* current;
  char* low_water;

  ~Back() {
    stack.current_ = current;
    stack.low_water_ = low_water;
  }
};

void MoreStack::prepare() noexcept {
  const OwnStack own = own_stack();
  if (own.end == nullptr) return;
  const auto size = static_cast<std::size_t>(own.end - own.begin);
  size_ = std::clamp(size, kSmallest, kLargest) / page() * page();
  low_water_ = own.begin + margin_of(std::min(size, kLargest));
}

MoreStack::Segment* MoreStack::next_segment() noexcept {
  Segment*& place = current_ != nullptr ? current_->inner : segments_;
  if (place != nullptr) return place;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* pages = mmap(nullptr, size_, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  if (mprotect(pages, page(), PROT_NONE) != 0) {
    munmap(pages, size_);
    return nullptr;
  }
  auto* segment = reinterpret_cast<Segment*>(static_cast<char*>(pages) + size_) - 1;
  *segment = {current_, nullptr, size_};
  return place = segment;
}

// One segment stays for the next time: a recursion may go up and down at its edge.
void* MoreStack::call(Body body, void* argument) {
  Segment* segment = next_segment();
  if (segment == nullptr) return body(argument);
  const Back back = {*this, current_, low_water_};  // also for an exception
  current_ = segment;
  low_water_ = segment->mapping() + page() + margin_of(segment->size);
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  const void* old_bottom = nullptr;
  std::size_t old_size = 0;
  struct Call {
    Body body;
    void *argument, **fake_stack;
    const void** old_bottom;
    std::size_t* old_size;
  } call = {body, argument, &fake_stack, &old_bottom, &old_size};
  argument = &call;
  body = [](void* made) -> void* {
    const Call inner = *static_cast<Call*>(made);
    __sanitizer_finish_switch_fiber(nullptr, inner.old_bottom, inner.old_size);
    void* result = inner.body(inner.argument);
    __sanitizer_start_switch_fiber(nullptr, *inner.old_bottom, *inner.old_size);
    return result;
  };
  __sanitizer_start_switch_fiber(&fake_stack, segment->mapping(), segment->size);
#endif
  void* result;
  {
    const OnSegment on(segment->mapping() + page(), reinterpret_cast<char*>(segment));
    result = whence_call_on_stack(segment, body, argument);
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  release_after(segment);
  return result;
}

void MoreStack::release_after(Segment* segment) noexcept {
  Segment* next = segment != nullptr ? segment->inner : segments_;
  (segment != nullptr ? segment->inner : segments_) = nullptr;
  while (next != nullptr) {
    Segment* inner = next->inner;
    munmap(next->mapping(), next->size);
    next = inner;
  }
}

void MoreStack::release() noexcept {
  low_water_ = nullptr;
  current_ = nullptr;
  release_after(nullptr);
}

}  // namespace whence::base
