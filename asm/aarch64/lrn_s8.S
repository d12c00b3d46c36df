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
//   and for what is not finite. Sums of up to 33 squares fit 32 bits.
// Registers: x0 args, x1 numbers, then the output, x2 the input, x3 channels left, x4 the reach, x5
//   the next values of a sum, x6 values left of it.
//   v0-v2   zero point, lo, hi     v3      in_zero_point    v4      bias    v5      0.5
//   v6      factor, multiplier, 20 u                        v7      sure so far
//   v16-v23 values
// Stack: none.
#include "asm.h"
#include "kernel.h"

// Inverse roots: an estimate of 8 bits, and two steps of Newton.
.macro  inverse_roots a, b, of_a, of_b
        frsqrte \a\().4s, \of_a\().4s
        frsqrte \b\().4s, \of_b\().4s
    .rept 2
        fmul    v20.4s, \a\().4s, \of_a\().4s
        fmul    v21.4s, \b\().4s, \of_b\().4s
        frsqrts v20.4s, v20.4s, \a\().4s
        frsqrts v21.4s, v21.4s, \b\().4s
        fmul    \a\().4s, \a\().4s, v20.4s
        fmul    \b\().4s, \b\().4s, v21.4s
    .endr
.endm

        registers x, 0, args, out, in, left, reach, from, count
numbers .req x1

#define MOST_REACH      16                      // beyond it sums that move are faster

func    n8_lrn_s8_neon
        ldr     numbers, [args, #N8_OFF_LR_NUMBERS]
        ldr     left, [args, #N8_OFF_LR_CHANNELS]
        ldr     reach, [args, #N8_OFF_LR_REACH]
        ldp     d18, d19, [numbers, #16]
        fmov    d16, #0.75
        fcmp    d18, d16
        b.ne    4f
        cmp     left, #8
        b.lo    4f
        cmp     reach, #MOST_REACH
        b.hi    4f

        ldp     d16, d17, [numbers]
        fcvt    s4, d16
        fcvt    s6, d17
        fcvt    s19, d19
        mov     v6.s[1], v19.s[0]
        mov     w5, #0x35a00000
        mov     v6.s[2], w5
        dup     v4.4s, v4.s[0]
        load_limits v0, v1, v2, from, N8_OFF_LR_ZERO_POINT, N8_OFF_LR_LO, N8_OFF_LR_HI
        spread  v3.8b, N8_OFF_LR_IN_ZERO_POINT, from
        fmov    v5.4s, #0.5
        movi    v7.16b, #255
        ldr     in, [args, #N8_OFF_LR_IN]
        ldr     out, [args, #N8_OFF_LR_OUT]

1:      sub     from, in, reach
        lsl     count, reach, #1
        ldr     d20, [from], #1
        movi    v16.4s, #0
        movi    v17.4s, #0
2:      ssubl   v21.8h, v20.8b, v3.8b
        ldr     d20, [from], #1
        subs    count, count, #1
        smlal   v16.4s, v21.4h, v21.4h
        smlal2  v17.4s, v21.8h, v21.8h
        b.pl    2b

        in_place ucvtf, v16.4s, v17.4s
        each    fmul, v6.s[0], v16.4s, v17.4s
        each    fadd, v4.4s, v16.4s, v17.4s
        inverse_roots v18, v19, v16, v17
        inverse_roots v16, v17, v18, v19
        ldr     d22, [in], #8
        fmul    v16.4s, v16.4s, v18.4s
        fmul    v17.4s, v17.4s, v19.4s
        ssubl   v22.8h, v22.8b, v3.8b
        fmul    v16.4s, v16.4s, v18.4s
        fmul    v17.4s, v17.4s, v19.4s
        sxtl2   v23.4s, v22.8h
        sxtl    v22.4s, v22.4h
        in_place scvtf, v22.4s, v23.4s
        each    fmul, v6.s[1], v22.4s, v23.4s
        fmul    v16.4s, v16.4s, v22.4s
        fmul    v17.4s, v17.4s, v23.4s

        frintn  v18.4s, v16.4s
        frintn  v19.4s, v17.4s
        fabs    v20.4s, v16.4s
        fabs    v21.4s, v17.4s
        fabd    v18.4s, v18.4s, v16.4s
        fabd    v19.4s, v19.4s, v17.4s
        fmla    v18.4s, v20.4s, v6.s[2]
        fmla    v19.4s, v21.4s, v6.s[2]
        in_place fcvtns, v16.4s, v17.4s
        fcmgt   v18.4s, v5.4s, v18.4s
        fcmgt   v19.4s, v5.4s, v19.4s
        sqxtn   v16.4h, v16.4s
        sqxtn2  v16.8h, v17.4s
        and     v7.16b, v7.16b, v18.16b
        sqadd   v16.8h, v16.8h, v0.8h
        and     v7.16b, v7.16b, v19.16b
        sqxtn   v16.8b, v16.8h
        smax    v16.8b, v16.8b, v1.8b
        smin    v16.8b, v16.8b, v2.8b
        str     d16, [out], #8
        subs    left, left, #8
        b.eq    3f
        cmp     left, #8
        b.hs    1b
        // The last eight, of which some were there before.
        sub     left, left, #8
        add     in, in, left
        add     out, out, left
        mov     left, #8
        b       1b

3:      uminv   b7, v7.16b
        umov    w1, v7.b[0]
        cbz     w1, 4f
        ret
4:      b       C_NAME(n8_lrn_s8_c)
endfunc n8_lrn_s8_neon
