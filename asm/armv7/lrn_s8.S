// SPDX-License-Identifier: Apache-2.0
//
// v = (in[c] - in_zero_point) * multiplier * d^-0.75,  d = bias + factor * S                  (18)
// out[c] = clamp(rne(v) + zero_point, lo, hi),  S the sum of (in[i] - in_zero_point)^2 over
//                                               c - reach <= i <= c + reach
//
//   void n8_lrn_s8_neon(const struct n8_lrn_args *args);
//
// In single precision, which decides where v is not close to halfway between two integers: else, and
// for other powers, C computes the pixel.
//
// Bounds: with u = 2^-24, d is within 4 u of its value; an inverse root within 3.1 u, of which half
//   of what its operand is off comes on top; d^-0.75, a product of three roots, within 13 u; v
//   within 16 u, so the integer is right where |v - rne(v)| + 20 u |v| < 0.5. That is false for NaN,
//   and for what is not finite or beyond 2^22. Sums of up to 33 squares fit 32 bits.
// Registers: r0 args, r1 numbers, then the output, r2 the input, r3 channels left, r4 twice the
//   reach, r5 the next values of a sum, r6 1, r12 values left of it.
//   q0      zero point         d2, d4  lo, hi       d3      in_zero_point    d5    factor, multiplier
//   q3      C of `round`       q4      bias         q5      0.5              q6    sure so far
//   d14     20 u               q8-q15  values
// Stack: 72 bytes, what it preserves.
#include "asm.h"

// Inverse roots: an estimate of 8 bits, and two steps of Newton.
.macro  inverse_roots a, b, of_a, of_b
        vrsqrte.f32 \a, \of_a
        vrsqrte.f32 \b, \of_b
    .rept 2
        vmul.f32 q12, \a, \of_a
        vmul.f32 q13, \b, \of_b
        vrsqrts.f32 q12, q12, \a
        vrsqrts.f32 q13, q13, \b
        vmul.f32 \a, \a, q12
        vmul.f32 \b, \b, q13
    .endr
.endm

        registers r, 0, args, out, in, left, reach, from, one
numbers .req r1
count   .req r12

#define MOST_REACH      16                      // beyond it sums that move are faster

func    n8_lrn_s8_neon
        ldr     numbers, [args, #N8_OFF_LR_NUMBERS]
        vldr    d16, [numbers, #16]
        vmov.f64 d17, #0.75
        vcmp.f64 d16, d17
        vmrs    APSR_nzcv, fpscr
        bne     4f
        ldr     left, [args, #N8_OFF_LR_CHANNELS]
        ldr     r12, [args, #N8_OFF_LR_REACH]
        cmp     left, #8
        blo     4f
        cmp     r12, #MOST_REACH
        bhi     4f
        save    r4, r5, r6, lr
        save_double d8, d9, d10, d11, d12, d13, d14

        mov     reach, r12, lsl #1
        ldr     in, [args, #N8_OFF_LR_IN]
        mov     one, #1
        load_limits N8_OFF_LR, from
        add     from, args, #N8_OFF_LR_IN_ZERO_POINT
        vld1.8  {d3[]}, [from]
        vldmia  numbers, {d16-d19}
        vcvt.f32.f64 s16, d16
        vcvt.f32.f64 s10, d17
        vcvt.f32.f64 s11, d19
        vdup.32 q4, d8[0]
        vmov.f32 q5, #0.5
        vmov.i8 q6, #255
        vmov.i32 d14, #0x35000000
        vorr.i32 d14, #0xa00000
        ldr     out, [args, #N8_OFF_LR_OUT]

1:      sub     from, in, reach, lsr #1
        mov     count, reach
        vld1.8  {d20}, [from], one
        vmov.i32 q8, #0
        vmov.i32 q9, #0
2:      vsubl.s8 q11, d20, d3
        vld1.8  {d20}, [from], one
        subs    count, count, #1
        vmlal.s16 q8, d22, d22
        vmlal.s16 q9, d23, d23
        bpl     2b

        vcvt.f32.u32 q8, q8
        vcvt.f32.u32 q9, q9
        each    vmul.f32, d5[0], q8, q9
        each    vadd.f32, q4, q8, q9
        inverse_roots q10, q11, q8, q9
        inverse_roots q8, q9, q10, q11
        vld1.8  {d28}, [in]!
        vmul.f32 q8, q8, q10
        vmul.f32 q9, q9, q11
        vsubl.s8 q15, d28, d3
        vmul.f32 q8, q8, q10
        vmul.f32 q9, q9, q11
        vmovl.s16 q14, d30
        vmovl.s16 q15, d31
        to_float q14, q15
        each    vmul.f32, d5[1], q14, q15
        vmul.f32 q8, q8, q14
        vmul.f32 q9, q9, q15

        vadd.f32 q10, q8, q3
        vadd.f32 q11, q9, q3
        vsub.f32 q12, q10, q3
        vsub.f32 q13, q11, q3
        vabd.f32 q12, q12, q8
        vabd.f32 q13, q13, q9
        vabs.f32 q8, q8
        vabs.f32 q9, q9
        vmla.f32 q12, q8, d14[0]
        vmla.f32 q13, q9, d14[0]
        each    vqsub.s32, q3, q10, q11
        vcgt.f32 q12, q5, q12
        vcgt.f32 q13, q5, q13
        vqmovn.s32 d16, q10
        vqmovn.s32 d17, q11
        vand    q6, q6, q12
        vqadd.s16 q8, q8, q0
        vand    q6, q6, q13
        vqmovn.s16 d16, q8
        vmax.s8 d16, d16, d2
        vmin.s8 d16, d16, d4
        vst1.8  {d16}, [out]!
        subs    left, left, #8
        beq     3f
        cmp     left, #8
        bhs     1b
        // The last eight, of which some were there before.
        sub     left, left, #8
        add     in, in, left
        add     out, out, left
        mov     left, #8
        b       1b

3:      vand    d12, d12, d13
        vmov    r1, r2, d12
        restore_double d8, d9, d10, d11, d12, d13, d14
        restore r4, r5, r6, lr
        and     r1, r1, r2
        cmn     r1, #1
        bxeq    lr
4:      b       n8_lrn_s8_c
endfunc n8_lrn_s8_neon
