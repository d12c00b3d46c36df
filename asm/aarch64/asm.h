// SPDX-License-Identifier: Apache-2.0
//
// Frame of every assembly file: symbols, levels, unwinding, BTI and the notes that tell the linker
// that no executable stack is needed and that BTI and PAC may stay on. Then what several families
// do alike. Clang assembles the same for macOS and Windows, whose objects have no such notes.
#ifndef N8_ASM_H
#define N8_ASM_H

// Debuggers find how to unwind in a section that takes no memory; nothing else unwinds.
        .cfi_sections .debug_frame
#ifdef __APPLE__
// There a label inside a function begins a part of its own for the linker, and what unwinding says of
// places in a function would have to cross parts.
        .irp    what, startproc, endproc, def_cfa_offset, rel_offset, register, restore, \
                remember_state, restore_state, negate_ra_state
.macro  .cfi_\what values:vararg
.endm
        .endr
#endif

// Names for registers that follow each other, from that of the number `first` on. The letter is
// that of their kind.
.macro  registers letter, first, names:vararg
        .set    n8_register, \first
    .irp    name, \names
      .irp  number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, \
                    20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        .if n8_register == \number
\name   .req    \letter\number
        .endif
      .endr
        .set    n8_register, n8_register + 1
    .endr
.endm

// A function in C.
#ifdef __APPLE__
#define C_NAME(name)    _##name
#else
#define C_NAME(name)    name
#endif

// What functions of a level may use: its march in runtime/levels.inc.
#define NEON    armv8-a
#define DOTPROD armv8.2-a+dotprod
#define I8MM    armv8.2-a+dotprod+i8mm
#define SME     armv8-a+sme

// Opens a global function that is hidden from users of the library. The hint is `bti c`,
// which assemblers accept by that name only above the baseline.
.macro  func    name, march=NEON
        .arch   \march
        .text
        .p2align 4
#if defined(__APPLE__) // C puts a _ before names; without it they are for this file
        .globl  _\name
        .private_extern _\name
_\name:
#else
        .global \name
#endif
#ifdef __ELF__
        .hidden \name
        .type   \name, %function
#endif
\name:
        .cfi_startproc
        hint    #34
.endm

        // Goes on in a function of another file.
.macro  go_on   name
#if defined(__APPLE__)
        b       _\name
#else
        b       \name
#endif
.endm

// Closes it.
.macro  endfunc name
        .cfi_endproc
#ifdef __ELF__
        .size   \name, . - \name
#endif
        .arch   NEON
.endm

#define D8_TO_D15 d8, d9, d10, d11, d12, d13, d14, d15

// Opens a frame of `size` bytes and saves pairs of registers from its start on.
.macro  enter   size, a, b, pairs:vararg
        stp     \a, \b, [sp, #-\size]!
        .cfi_def_cfa_offset \size
        saved   0, \a, \b
        save    16, \pairs
.endm

.macro  save    at, a, b, pairs:vararg
    .ifnb \a
        stp     \a, \b, [sp, #\at]
        saved   \at, \a, \b
        save    \at+16, \pairs
    .endif
.endm

.macro  saved   at, a, b
        .cfi_rel_offset \a, \at
        .cfi_rel_offset \b, \at + 8
.endm

// Restores them and closes the frame.
.macro  leave   size, a, b, pairs:vararg
        restore 16, \pairs
        ldp     \a, \b, [sp], #\size
        .cfi_def_cfa_offset 0
        restored \a, \b, \pairs
.endm

.macro  restore at, a, b, pairs:vararg
    .ifnb \a
        ldp     \a, \b, [sp, #\at]
        restore \at+16, \pairs
    .endif
.endm

// Each of the registers is as the caller had it, from here on.
.macro  restored registers:vararg
        .irp    register, \registers
        .cfi_restore \register
        .endr
.endm

// An operation on each of the registers, in place, with the same operand.
.macro  each    operation, operand, registers:vararg
    .irp    register, \registers
        \operation \register, \register, \operand
    .endr
.endm

// The same with two operands, which take turns.
.macro  each2   operation, first, second, a, b, registers:vararg
    .ifnb \a
        \operation \a, \a, \first
        \operation \b, \b, \second
        each2   \operation, \first, \second, \registers
    .endif
.endm

// The same without an operand.
.macro  in_place operation, registers:vararg
    .irp    register, \registers
        \operation \register, \register
    .endr
.endm

// The same value for each of the registers.
.macro  fill    operation, value, registers:vararg
    .irp    register, \registers
        \operation \register, \value
    .endr
.endm

// An operation on sixteen values in v16-v19, with an operand for each register.
.macro  on16    operation, a, b, c, d
        \operation v16.4s, v16.4s, \a
        \operation v17.4s, v17.4s, \b
        \operation v18.4s, v18.4s, \c
        \operation v19.4s, v19.4s, \d
.endm

// zip1 and zip2, uzp1 and uzp2 or trn1 and trn2 of the same registers.
.macro  couple  operation, first, second, a, b
        \operation\()1 \first, \a, \b
        \operation\()2 \second, \a, \b
.endm

// v < 0 ? fmul(v, slope) : v of four floats (5b) in each of the registers.
.macro  leaky   slopes, scaled, negative, v, registers:vararg
    .ifnb \v
        fmul    \scaled\().4s, \v\().4s, \slopes\().4s
        fcmlt   \negative\().4s, \v\().4s, #0.0
        bit     \v\().16b, \scaled\().16b, \negative\().16b
        leaky   \slopes, \scaled, \negative, \registers
    .endif
.endm

// A field of the struct at x0, or its low bytes, in all lanes.
.macro  spread  vector, field, ptr
        add     \ptr, x0, #\field
        ld1r    {\vector}, [\ptr]
.endm

// Zero point (16 bits), lo and hi: the low bytes of fields of the struct at x0.
.macro  load_limits zero_point, lo, hi, ptr, at_zero_point, at_lo, at_hi
        spread  \zero_point\().8h, \at_zero_point, \ptr
        spread  \lo\().16b, \at_lo, \ptr
        spread  \hi\().16b, \at_hi, \ptr
.endm

// clamp(rne(v) + zero_point, lo, hi) of sixteen floats in a-d, as bytes in `a` (5). fcvtns
// saturates to 32 bits, everything after it to 16 and then 8, so nothing wraps and the clamp sees
// the right side; NaN becomes 0. The operation `meanwhile` goes where in-order cores wait.
.macro  round16 a, b, c, d, zero_point, lo, hi, meanwhile:vararg
        in_place fcvtns, \a\().4s, \c\().4s, \b\().4s, \d\().4s
        sqxtn   \a\().4h, \a\().4s
        sqxtn   \c\().4h, \c\().4s
        sqxtn2  \a\().8h, \b\().4s
        sqxtn2  \c\().8h, \d\().4s
        sqadd   \a\().8h, \a\().8h, \zero_point\().8h
        sqadd   \c\().8h, \c\().8h, \zero_point\().8h
        sqxtn   \a\().8b, \a\().8h
        \meanwhile
        sqxtn2  \a\().16b, \c\().8h
        smax    \a\().16b, \a\().16b, \lo\().16b
        smin    \a\().16b, \a\().16b, \hi\().16b
.endm

// The same of int16. The clamp comes before the zero point, with limits moved by it, which are
// below 2^17; what is then added modulo 2^16 is exact, as the result fits. From w registers: v0
// lo - zero_point, v1 hi - zero_point (32 bits), v2 zero_point (16 bits).
.macro  set_limits_s16 zero_point, lo, hi
        sub     \lo, \lo, \zero_point
        sub     \hi, \hi, \zero_point
        dup     v0.4s, \lo
        dup     v1.4s, \hi
        dup     v2.8h, \zero_point
.endm

// Four floats to the int16 values of the register's half.
.macro  round4_s16 v
        fcvtns  \v\().4s, \v\().4s
        smax    \v\().4s, \v\().4s, v0.4s
        smin    \v\().4s, \v\().4s, v1.4s
        xtn     \v\().4h, \v\().4s
        add     \v\().4h, \v\().4h, v2.4h
.endm

// Eight int16 values of each operand, v20 and v21, to the floats of v16-v17 and v18-v19, less their
// zero points v6 and v7.
.macro  centre8
        sxtl    v16.4s, v20.4h
        sxtl2   v17.4s, v20.8h
        sxtl    v18.4s, v21.4h
        sxtl2   v19.4s, v21.8h
        sub     v16.4s, v16.4s, v6.4s
        sub     v17.4s, v17.4s, v6.4s
        sub     v18.4s, v18.4s, v7.4s
        sub     v19.4s, v19.4s, v7.4s
        in_place scvtf, v16.4s, v17.4s, v18.4s, v19.4s
.endm

// Eight floats to the int16 values of the first register.
.macro  round8_s16 low, high
        fcvtns  \low\().4s, \low\().4s
        fcvtns  \high\().4s, \high\().4s
        smax    \low\().4s, \low\().4s, v0.4s
        smax    \high\().4s, \high\().4s, v0.4s
        smin    \low\().4s, \low\().4s, v1.4s
        smin    \high\().4s, \high\().4s, v1.4s
        xtn     \low\().4h, \low\().4s
        xtn2    \low\().8h, \high\().4s
        add     \low\().8h, \low\().8h, v2.8h
.endm

// Stores the first `count` % 16 bytes of v16; `to` moves, after the last byte by `step`.
.macro  store_last to, count, step=1
        tbz     \count, #3, 7f
        st1     {v16.d}[0], [\to], #8
        ext     v16.16b, v16.16b, v16.16b, #8
7:      tbz     \count, #2, 7f
        st1     {v16.s}[0], [\to], #4
        ext     v16.16b, v16.16b, v16.16b, #4
7:      tbz     \count, #1, 7f
        st1     {v16.h}[0], [\to], #2
        ext     v16.16b, v16.16b, v16.16b, #2
7:      tbz     \count, #0, 7f
    .if \step
        st1     {v16.b}[0], [\to], #1
    .else
        st1     {v16.b}[0], [\to]
    .endif
7:
.endm

// Products of bytes in the order for the Cortex-A53. No vector operation begins beside a load to a
// vector register there, but an insertion from a general one does. So of 16 bytes the high half is
// loaded to a general register, beside a product, and inserted beside the low half of what comes two
// later. Products go through v8-v11.

// 16 bytes at ptr: the low half in q, the high half on its way in `high`, which has had that of r. Or
// the blocks of 8 bytes after ptr whose numbers are `low` and `up`.
.macro  halves  q, ptr, r, high, low, up
    .ifnb \q
      .ifnb \low
        ldr     \q, [\ptr, \low, lsl #3]
      .else
        ldr     \q, [\ptr], #16
      .endif
        .ifnb \r
        ins     \r\().d[1], \high
        .endif
    .endif
.endm

.macro  other_half q, ptr, r, high, low, up
    .ifnb \q
      .ifnb \up
        ldr     \high, [\ptr, \up, lsl #3]
      .else
        ldr     \high, [\ptr, #-8]
      .endif
    .endif
.endm

// Products of a pixel and four channels, and loads before them.
.macro  products op, size, a, b0, b1, b2, b3, l0, l1, l2, l3
        halves  \l0
        \op     v8.8h, \a\().\size, \b0\().\size
        other_half \l0
        halves  \l1
        \op     v9.8h, \a\().\size, \b1\().\size
        other_half \l1
        halves  \l2
        \op     v10.8h, \a\().\size, \b2\().\size
        other_half \l2
        halves  \l3
        \op     v11.8h, \a\().\size, \b3\().\size
        other_half \l3
.endm

// The first sums of a tile by saddlp, others by sadalp.
.macro  sum_up  add, s0, s1, s2, s3, l0, l1, l2, l3
        halves  \l0
        \add    \s0\().4s, v8.8h
        other_half \l0
        halves  \l1
        \add    \s1\().4s, v9.8h
        other_half \l1
        halves  \l2
        \add    \s2\().4s, v10.8h
        other_half \l2
        halves  \l3
        \add    \s3\().4s, v11.8h
        other_half \l3
.endm

// Operands of `halves`, as one of a macro's.
#define HALVES(...)     QUOTE(__VA_ARGS__)
#define QUOTE(...)      #__VA_ARGS__

#ifdef __ELF__
        .section .note.GNU-stack, "", %progbits

        .section .note.gnu.property, "a"
        .p2align 3
        .word   4                               // size of "GNU\0"
        .word   16                              // size of the description
        .word   5                               // NT_GNU_PROPERTY_TYPE_0
        .asciz  "GNU"
        .word   0xc0000000                      // GNU_PROPERTY_AARCH64_FEATURE_1_AND
        .word   4                               // size of the value
        .word   3                               // BTI | PAC
        .word   0                               // padding to 8 bytes
        .text
#endif

#endif // N8_ASM_H
