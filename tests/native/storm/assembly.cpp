// assembly.cpp: code without unwind tables, by hand and made at run time. See storm.h.
//
// Each function takes what to call, and what to call it with.
#include <sys/mman.h>

#include <cstring>

#include "storm/storm.h"

#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
storm_with_pointer:
    pushq %rbp
    movq %rsp, %rbp
    movq %rdi, %rax
    movl %esi, %edi
    callq *%rax
    popq %rbp
    ret
    .p2align 4
storm_without_pointer:
    subq $24, %rsp
    movq %rdi, %rax
    movl %esi, %edi
    callq *%rax
    addq $24, %rsp
    ret
    .p2align 4
storm_trashed:
    pushq %rbp
    movq $-1234, %rbp
    movq %rdi, %rax
    movl %esi, %edi
    callq *%rax
    popq %rbp
    ret
    .p2align 4
storm_inside:
    pushq %rbp
    leaq 8(%rsp), %rbp
    movq %rdi, %rax
    movl %esi, %edi
    callq *%rax
    popq %rbp
    ret
)");
#else
asm(R"(
    .text
    .p2align 4
storm_with_pointer:
    stp x29, x30, [sp, #-16]!
    mov x29, sp
    mov x2, x0
    mov w0, w1
    blr x2
    ldp x29, x30, [sp], #16
    ret
    .p2align 4
storm_without_pointer:
    str x30, [sp, #-32]!
    mov x2, x0
    mov w0, w1
    blr x2
    ldr x30, [sp], #32
    ret
    .p2align 4
storm_trashed:
    stp x29, x30, [sp, #-16]!
    mov x29, #-1234
    mov x2, x0
    mov w0, w1
    blr x2
    ldp x29, x30, [sp], #16
    ret
    .p2align 4
storm_inside:
    stp x29, x30, [sp, #-16]!
    add x29, sp, #8
    mov x2, x0
    mov w0, w1
    blr x2
    ldp x29, x30, [sp], #16
    ret
)");
#endif

extern "C" {
[[gnu::visibility("hidden")]] void storm_with_pointer(storm::Call call, int depth);
[[gnu::visibility("hidden")]] void storm_without_pointer(storm::Call call, int depth);
[[gnu::visibility("hidden")]] void storm_trashed(storm::Call call, int depth);
[[gnu::visibility("hidden")]] void storm_inside(storm::Call call, int depth);
}

namespace storm {
namespace {

// With a frame pointer; and one that calls the first, directly.
#if defined(__x86_64__)
constexpr unsigned char kInner[] = {0x55, 0x48, 0x89, 0xE5, 0x48, 0x89, 0xF8,
                                    0x89, 0xF7, 0xFF, 0xD0, 0x5D, 0xC3};
constexpr unsigned char kOuter[] = {0x55, 0x48, 0x89, 0xE5, 0xE8, 0x07, 0x00, 0x00,
                                    0x00, 0x5D, 0xC3, 0x90, 0x90, 0x90, 0x90, 0x90};
#else
constexpr std::uint32_t kInner[] = {0xA9BF7BFD, 0x910003FD, 0xAA0003E2, 0x2A0103E0,
                                    0xD63F0040, 0xA8C17BFD, 0xD65F03C0};
constexpr std::uint32_t kOuter[] = {0xA9BF7BFD, 0x910003FD, 0x94000004,
                                    0xA8C17BFD, 0xD65F03C0, 0xD503201F};
#endif

using Code = void (*)(Call, int);
char* pages = nullptr;

void go_on(int depth) {
  onward(depth - 1);
  asm volatile("");
}

}  // namespace

void prepare_pages() {
  constexpr std::size_t kSize = 65536;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* made = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (made == MAP_FAILED) fail("there is no memory");
  pages = static_cast<char*>(made);
  std::memcpy(pages, kOuter, sizeof kOuter);
  std::memcpy(pages + sizeof kOuter, kInner, sizeof kInner);
  if (mprotect(pages, kSize, PROT_READ | PROT_EXEC) != 0) fail("pages cannot be run");
  __builtin___clear_cache(pages, pages + kSize);
}

void through_assembly(int depth) {
  const Passing unlisted(here.unlisted);
  // A frame pointer that is kept leads on, if the call says so.
  if (random(2) == 0) return storm_with_pointer(go_on, depth);
  const Passing unprovable(here.unprovable);
  switch (random(5)) {
    case 0: return storm_without_pointer(go_on, depth);
    case 1: return storm_trashed(go_on, depth);
    case 2: return storm_inside(go_on, depth);
    case 3: return reinterpret_cast<Code>(pages + sizeof kOuter)(go_on, depth);
    default: return reinterpret_cast<Code>(pages)(go_on, depth);
  }
}

}  // namespace storm
