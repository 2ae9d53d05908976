// awkward_rows.h: places in code whose rows are the ones that tests need; nobody runs them.
//
// Each is a function of some instructions that do nothing, with a table written by hand. Registers
// that say "here" can be made up, and the stack with them.
#pragma once

#include "unwind/registers.h"

// Where they are counted from, by number: the assembler takes those on every processor.
#if defined(__x86_64__)
#define ROW_SP "7"
#define ROW_FP "6"
#define ROW_RETURN "16"
#define ROW_BREG_FP "0x76"
#define ROW_TYPE "@function"
#define ROW_SIGNAL_RETURN "    .byte 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05\n"
#else
#define ROW_SP "31"
#define ROW_FP "29"
#define ROW_RETURN "30"
#define ROW_BREG_FP "0x8d"
#define ROW_TYPE "%function"
#define ROW_SIGNAL_RETURN "    .inst 0xd2801168, 0xd4000001\n"
#endif

#define ROW(name, rules)                                                                          \
  asm("    .text\n    .p2align 4\n    .type row_" #name ", " ROW_TYPE                             \
      "\n"                                                                                        \
      "row_" #name ":\n    .cfi_startproc\n" rules                                                \
      "    .rept 16\n    nop\n    .endr\n    .cfi_endproc\n    .size row_" #name ", .-row_" #name \
      "\n");                                                                                      \
  extern "C" [[gnu::visibility("hidden")]] const char row_##name[];                               \
  namespace row {                                                                                 \
  [[maybe_unused]] static whence::unwind::Address name() {                                        \
    return reinterpret_cast<whence::unwind::Address>(row_##name) + 8;                             \
  }                                                                                               \
  }

#define ROW_LINK "    .cfi_offset " ROW_RETURN ", -8\n"

// The frame ends two words further out; the outer one is the return address.
ROW(near, "    .cfi_def_cfa " ROW_SP ", 16\n" ROW_LINK)
// It ends a page further out.
ROW(far, "    .cfi_def_cfa " ROW_SP ", 4096\n" ROW_LINK)
// The frame pointer points to the caller's.
ROW(by_fp, "    .cfi_def_cfa " ROW_FP ", 16\n" ROW_LINK "    .cfi_offset " ROW_FP ", -16\n")
// The word before the one that the frame pointer points to is where the frame ends.
ROW(aligned, ROW_LINK "    .cfi_escape 0x0f, 3, " ROW_BREG_FP
                      ", 0x78, 0x06\n"
                      "    .cfi_escape 0x10, " ROW_FP ", 2, " ROW_BREG_FP ", 0\n")
// The caller's frame pointer is nowhere.
ROW(losing, "    .cfi_def_cfa " ROW_SP ", 16\n" ROW_LINK "    .cfi_undefined " ROW_FP "\n")
// Nobody has called this.
ROW(last, "    .cfi_undefined " ROW_RETURN "\n")
// The kernel has.
ROW(signal, "    .cfi_signal_frame\n" ROW_SIGNAL_RETURN)
// Its table says so, but it is code like any other.
ROW(trampoline, "    .cfi_signal_frame\n    .cfi_def_cfa " ROW_SP ", 16\n" ROW_LINK)
// The return address is in the link register, where there is one.
ROW(leaf, "    .cfi_def_cfa " ROW_SP ", 0\n")
