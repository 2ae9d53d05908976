// registers.h: what the unwinder knows of a frame: the registers that rows of unwind tables refer
// to.
//
// Threads: each its own. Allocates: never. Fails by: it cannot.
#pragma once

#include <cstdint>

namespace whence::unwind {

using Address = std::uintptr_t;

struct Registers {
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;    // x86-64: rbp; aarch64: x29
  Address link = 0;  // aarch64: x30; else unused
};

// Those of the function that this is expanded in.
[[nodiscard, gnu::always_inline]] inline Registers registers_here() noexcept {
  Registers here;
#if defined(__x86_64__)
  // The frame pointer first: in code that keeps none, it may be the register of another result.
  asm volatile(
      "movq %%rbp, %2\n\t"
      "movq %%rsp, %1\n\t"
      "leaq 0(%%rip), %0"
      : "=r"(here.pc), "=r"(here.sp), "=r"(here.fp));
#elif defined(__aarch64__)
  // To memory: each of the two may be the register of another result.
  asm volatile(
      "str x29, %2\n\t"
      "str x30, %3\n\t"
      "mov %1, sp\n\t"
      "adr %0, ."
      : "=r"(here.pc), "=r"(here.sp), "=m"(here.fp), "=m"(here.link));
#endif
  return here;
}

// Whether a frame ends right behind the words that a frame pointer points to. Compilers for aarch64
// put them at its other end.
#if defined(__x86_64__)
inline constexpr bool kEndsAtFramePointer = true;
#else
inline constexpr bool kEndsAtFramePointer = false;
#endif

// Where it does: those of the caller of a function with a frame pointer, from its frame. The pc is
// one to return to.
[[nodiscard, gnu::always_inline]] inline Registers registers_outside(const void* frame) noexcept {
  const auto* words =
      static_cast<const Address*>(frame);  // the caller's frame pointer, and where to
  Registers at;                            // return to
  at.fp = words[0];
  at.pc = words[1];
  at.sp = reinterpret_cast<Address>(words + 2);
  return at;
}

// Numbers of the registers in unwind tables.
#if defined(__aarch64__)
inline constexpr unsigned kFramePointer = 29, kLink = 30, kStackPointer = 31, kReturn = 30;
inline constexpr unsigned kProgramCounter = 32;
#else
inline constexpr unsigned kFramePointer = 6, kStackPointer = 7, kReturn = 16;
inline constexpr unsigned kProgramCounter = 16;
#endif

// A return address may be signed; the signature lies in bits that addresses do not use.
[[nodiscard, gnu::always_inline]] inline Address without_signature(Address address) noexcept {
#if defined(__aarch64__)
  constexpr unsigned kAddressBits = 48;
  return address & ((Address{1} << kAddressBits) - 1);
#else
  return address;
#endif
}

}  // namespace whence::unwind
