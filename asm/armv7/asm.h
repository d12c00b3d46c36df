// SPDX-License-Identifier: Apache-2.0
//
// What all assembly files share: symbols, unwinding, the note that tells the linker that no
// executable stack is needed, and macros that several families of kernels use.
//
// Kernels are A32 code; linkers turn calls from Thumb code into blx, and `bx lr` returns to it.
#ifndef N8_ASM_H
#define N8_ASM_H

#include "kernel.h"

        .syntax unified
        .arm

// Only debuggers unwind, by a section that takes no memory.
        .cfi_sections .debug_frame

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

// Opens a global function that is hidden from users of the library.
.macro  func    name
        .text
        .p2align 4
        .global \name
        .hidden \name
        .type   \name, %function
\name:
        .cfi_startproc
.endm

// Closes it.
.macro  endfunc name
        .cfi_endproc
        .size   \name, . - \name
.endm

// Tell debuggers of registers of \size bytes that were just pushed or popped.
.macro  pushed  size, registers:vararg
        .set    n8_place, 0
    .irp    register, \registers
        .set    n8_place, n8_place + \size
    .endr
        .cfi_adjust_cfa_offset n8_place
        .set    n8_place, 0
    .irp    register, \registers
        .cfi_rel_offset \register, n8_place
        .set    n8_place, n8_place + \size
    .endr
.endm

.macro  popped  size, registers:vararg
    .irp    register, \registers
        .cfi_adjust_cfa_offset -\size
        .cfi_restore \register
    .endr
.endm

// Push and pop core registers, and double ones.
.macro  save    registers:vararg
        push    {\registers}
        pushed  4, \registers
.endm

.macro  restore registers:vararg
        pop     {\registers}
        popped  4, \registers
.endm

.macro  save_double registers:vararg
        vpush   {\registers}
        pushed  8, \registers
.endm

.macro  restore_double registers:vararg
        vpop    {\registers}
        popped  8, \registers
.endm

// Preserves all that a function must, in 100 bytes of the stack, below which it gets \locals bytes.
.macro  push_all locals=0
        save    r4, r5, r6, r7, r8, r9, r10, r11, lr
        save_double d8, d9, d10, d11, d12, d13, d14, d15
    .if \locals
        sub     sp, sp, #\locals
        .cfi_adjust_cfa_offset \locals
    .endif
.endm

// Restores it and returns. If anything follows, it is code of the same function.
.macro  pop_all locals=0
        .cfi_remember_state
    .if \locals
        add     sp, sp, #\locals
        .cfi_adjust_cfa_offset -\locals
    .endif
        restore_double d8, d9, d10, d11, d12, d13, d14, d15
        pop     {r4-r11, pc}
        .cfi_restore_state
.endm

// The float argument after three of one word goes to s0, the integer after it to r3, and what
// follows is on the stack, from FOLLOWING on. Comes before anything is pushed.
#ifdef __ARM_PCS_VFP
#define FOLLOWING 0
.macro  take_float
.endm
#else
#define FOLLOWING 4
.macro  take_float
        vmov    s0, r3
        ldr     r3, [sp]
.endm
#endif

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

// The same value for each of the registers.
.macro  fill    operation, value, registers:vararg
    .irp    register, \registers
        \operation \register, \value
    .endr
.endm

// Integers to floats, rounded to nearest even (7).
.macro  to_float registers:vararg
    .irp    register, \registers
        vcvt.f32.s32 \register, \register
    .endr
.endm

// Multiplies floats by their slopes where they are negative (5b).
.macro  leaky   slopes, product, negative, registers:vararg
    .irp    register, \registers
        vmul.f32 \product, \register, \slopes
        vclt.f32 \negative, \register, #0
        vbit    \register, \product, \negative
    .endr
.endm

// Two of them, interleaved.
.macro  leaky2  a, b, slope, product_a, product_b, negative_a, negative_b
        vmul.f32 \product_a, \a, \slope
        vmul.f32 \product_b, \b, \slope
        vclt.f32 \negative_a, \a, #0
        vclt.f32 \negative_b, \b, #0
        vbit    \a, \product_a, \negative_a
        vbit    \b, \product_b, \negative_b
.endm

// Replaces NaN by 0: (5b) and (6) make it of infinities.
.macro  number  temp, registers:vararg
    .irp    register, \registers
        vceq.f32 \temp, \register, \register
        vand    \register, \register, \temp
    .endr
.endm

// C = 1.5 * 2^23: a float below 2^22 plus C has no bit for a fraction, so the addition rounds it,
// half to even. The low 16 bits of C are 0, so those of the sum are the integer.
.macro  set_rounding c=q3
        vmov.i32 \c, #0x4b000000
        vorr.i32 \c, #0x400000
.endm

// Floats of any size to integers, C in \c. The bits of floats rise with their values: v + C less
// the bits of C, saturating, is the rounded value where |v| is below 2^22, and elsewhere at least
// 2^22, with the sign of v. The caller excludes NaN.
.macro  round   c, registers:vararg
        each    vadd.f32, \c, \registers
        each    vqsub.s32, \c, \registers
.endm

// Sixteen floats in q8-q11 to the int8 values of q8: clamp(rne(v) + zero_point, lo, hi)       (5)
//
// Bounds: what follows `round` saturates to 16 and then 8 bits, so nothing wraps, and the clamp
//   sees values on the right side.
// Registers: q0 zero point (16 bits), q1 lo, q2 hi, q3 C.
.macro  round16
        round   q3, q8, q9, q10, q11
        vqmovn.s32 d16, q8
        vqmovn.s32 d17, q9
        vqmovn.s32 d18, q10
        vqmovn.s32 d19, q11
        each    vqadd.s16, q0, q8, q9
        vqmovn.s16 d16, q8
        vqmovn.s16 d17, q9
        vmax.s8 q8, q8, q1
        vmin.s8 q8, q8, q2
.endm

// q0-q3 of round16 from the struct of arguments at r0, the offsets of whose fields begin with
// \fields. The low bytes of int32 fields are the int16 and int8 values.
.macro  load_limits fields, ptr
        add     \ptr, r0, #\fields\()_ZERO_POINT
        vld1.16 {d0[], d1[]}, [\ptr]
        add     \ptr, r0, #\fields\()_LO
        vld1.8  {d2[], d3[]}, [\ptr]
        add     \ptr, r0, #\fields\()_HI
        vld1.8  {d4[], d5[]}, [\ptr]
        set_rounding
.endm

// Stores the first \count % 16 bytes of q8; \to moves.
.macro  store_last to, count
        tst     \count, #8
        beq     7f
        vst1.8  {d16}, [\to]!
        vmov    d16, d17
7:      tst     \count, #4
        beq     7f
        vst1.8  {d16[0]}, [\to]!
        vst1.8  {d16[1]}, [\to]!
        vst1.8  {d16[2]}, [\to]!
        vst1.8  {d16[3]}, [\to]!
        vext.8  d16, d16, d16, #4
7:      tst     \count, #2
        beq     7f
        vst1.8  {d16[0]}, [\to]!
        vst1.8  {d16[1]}, [\to]!
        vext.8  d16, d16, d16, #2
7:      tst     \count, #1
        beq     7f
        vst1.8  {d16[0]}, [\to]!
7:
.endm

// Stores the first \count % 8 words of q8 and q9; \to moves.
.macro  store_last32 to, count
        tst     \count, #4
        beq     7f
        vst1.32 {d16-d17}, [\to]!
        vmov    q8, q9
7:      tst     \count, #2
        beq     7f
        vst1.32 {d16}, [\to]!
        vmov    d16, d17
7:      tst     \count, #1
        beq     7f
        vst1.32 {d16[0]}, [\to]
7:
.endm

// Floats to integers of limited range, as (2), (5) and (6) have it.
//
// Bounds: limits less the zero point are floats below 2^17, so adding C to what is between them
//   rounds it. The zero point is added to the low 8 or 16 bits of the sum, and the result fits
//   these. NaN passes through as 0x7fc00000, the only one that NEON makes, and gives the zero
//   point.
// Registers: q1 lo - zero_point, q2 hi - zero_point, q3 C.
.macro  nearest registers:vararg
        nearest_between q1, q2, q3, \registers
.endm

.macro  nearest_between lo, hi, c, registers:vararg
        each    vmax.f32, \lo, \registers
        each    vmin.f32, \hi, \registers
        each    vadd.f32, \c, \registers
.endm

// Two floats in a double register.
.macro  nearest2 d
        nearest_between d2, d4, d6, \d
.endm

// q1 or q2 from a core register, which changes.
.macro  set_limit limit, value, zero_point
        sub     \value, \value, \zero_point
        vdup.32 \limit, \value
        vcvt.f32.s32 \limit, \limit
.endm

// q1-q3, and a register with the zero point, from the struct of arguments at r0, the offsets of
// whose fields begin with \fields.
.macro  load_range fields, zero_point, temp
        ldr     \zero_point, [r0, #\fields\()_ZERO_POINT]
        ldr     \temp, [r0, #\fields\()_LO]
        set_limit q1, \temp, \zero_point
        ldr     \temp, [r0, #\fields\()_HI]
        set_limit q2, \temp, \zero_point
        set_rounding
.endm

// What depthwise kernels need to know to requantize (5), from the struct of arguments at r0.
//   facts   bit 31: values are not small (kernel.h); else 1: the zero point is odd; 2: there is an
//           upper limit that int8 does not have
//   magic   the bits of C and of the zero point, made even: small values plus the zero point fit 16
//           bits, so the low 16 bits of v + magic are the result
.macro  find_facts facts, magic, temp
        ldr     \facts, [r0, #N8_OFF_DW_SMALL]
        ldr     \temp, [r0, #N8_OFF_DW_HI]
        eor     \facts, \facts, #1
        mov     \facts, \facts, lsl #31
        cmp     \temp, #127
        ldr     \temp, [r0, #N8_OFF_DW_ZERO_POINT]
        orrne   \facts, \facts, #2
        and     \magic, \temp, #1
        orr     \facts, \facts, \magic
        bic     \magic, \temp, #1
        add     \magic, \magic, #0x4b000000
        add     \magic, \magic, #0x400000
.endm

// Depthwise kernels that compute groups of 4 outputs, of 8 channels, go from one to the next by
// \apart, \middle and \apart bytes in the input, and by distances of its own in the output. The
// last group of a row ends with the row. Where a row has fewer than 4 outputs, distances become 0,
// and some outputs are computed several times and stored at the same place: three are 0 1 1 2, two
// 0 0 1 1.
.macro  few_outputs pixels, apart, middle, out_apart, out_middle
        cmp     \pixels, #3
        moveq   \middle, #0
        moveq   \out_middle, #0
        movlo   \apart, #0
        movlo   \out_apart, #0
        cmp     \pixels, #1
        moveq   \middle, #0
        moveq   \out_middle, #0
.endm

        .section .note.GNU-stack, "", %progbits
        .text

#endif // N8_ASM_H
