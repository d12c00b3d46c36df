// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float)(sums[p][n] + bias[n]), multiplier[n]), fadd(v, fmul((float)(residual[p][n] -
// residual_zero_point), residual_scale)), v < 0 ? fmul(v, slope[n]) : v;
// out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                     (5)(5b)(6)
//
//   void n8_output_s32_s16_neon(const struct n8_output_args *args);
//
// Sixteen channels of all pixels, then four and four, the last of which may be fewer: what belongs
// to channels stays in registers.
//
// Bounds: sums wrap; round8_s16 of asm.h.
// Registers: x0-x17; v0-v2 the limits, v3 residual scale, v6 residual zero point, v20-v23
//   multipliers, v24-v27 biases, v28-v31 slopes, v16-v19 results, v4, v5 scratch.
// Stack: none.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, out_stride, sums, sums_stride, residual, residual_stride
        registers x, 8, multiplier, slope, pixels, channels, to, from, added, left
bias    .req x7

        // v + what four values of the residual at `offset` are.
.macro  add4    v, offset
        ldr     d4, [added, #\offset]
        sxtl    v4.4s, v4.4h
        sub     v4.4s, v4.4s, v6.4s
        scvtf   v4.4s, v4.4s
        fmul    v4.4s, v4.4s, v3.s[0]
        fadd    \v\().4s, \v\().4s, v4.4s
.endm

        // To the next pixel.
.macro  next
        add     from, from, sums_stride
        add     to, to, out_stride
        add     added, added, residual_stride
        subs    left, left, #1
.endm

func    n8_output_s32_s16_neon
        ldr     w12, [args, #N8_OFF_OW_ZERO_POINT]
        ldp     w13, w14, [args, #N8_OFF_OW_LO]
        set_limits_s16 w12, w13, w14
        ldr     s3, [args, #N8_OFF_OW_RESIDUAL_SCALE]
        ldr     w12, [args, #N8_OFF_OW_RESIDUAL_ZERO_POINT]
        dup     v6.4s, w12
        ldp     out, out_stride, [args, #N8_OFF_OW_OUT]
        ldp     sums, sums_stride, [args, #N8_OFF_OW_SUMS]
        ldp     residual, residual_stride, [args, #N8_OFF_OW_RESIDUAL]
        ldp     bias, multiplier, [args, #N8_OFF_OW_BIAS]
        ldp     slope, pixels, [args, #N8_OFF_OW_SLOPE]
        ldr     channels, [args, #N8_OFF_OW_CHANNELS]
        fill    movi, #0, v24.16b, v25.16b, v26.16b, v27.16b
        subs    channels, channels, #16
        b.lo    5f

1:      ldp     q20, q21, [multiplier], #32
        ldp     q22, q23, [multiplier], #32
        cbz     bias, 2f
        ldp     q24, q25, [bias], #32
        ldp     q26, q27, [bias], #32
2:      cbz     slope, 2f
        ldp     q28, q29, [slope], #32
        ldp     q30, q31, [slope], #32
2:      mov     to, out
        mov     from, sums
        mov     added, residual
        mov     left, pixels
3:      ldp     q16, q17, [from]
        ldp     q18, q19, [from, #32]
        on16    add, v24.4s, v25.4s, v26.4s, v27.4s
        in_place scvtf, v16.4s, v17.4s, v18.4s, v19.4s
        on16    fmul, v20.4s, v21.4s, v22.4s, v23.4s
        cbz     residual, 4f
        add4    v16, 0
        add4    v17, 8
        add4    v18, 16
        add4    v19, 24
4:      cbz     slope, 4f
        leaky   v28, v4, v5, v16
        leaky   v29, v4, v5, v17
        leaky   v30, v4, v5, v18
        leaky   v31, v4, v5, v19
4:      round8_s16 v16, v17
        round8_s16 v18, v19
        stp     q16, q18, [to]
        next
        b.ne    3b
        add     sums, sums, #64
        add     out, out, #32
        add     x12, residual, #32
        cmp     residual, #0
        csel    residual, x12, residual, ne
        subs    channels, channels, #16
        b.hs    1b

5:      adds    channels, channels, #16
        b.eq    9f
6:      ldr     q20, [multiplier], #16
        cbz     bias, 2f
        ldr     q24, [bias], #16
2:      cbz     slope, 2f
        ldr     q28, [slope], #16
2:      mov     to, out
        mov     from, sums
        mov     added, residual
        mov     left, pixels
7:      ldr     q16, [from]
        add     v16.4s, v16.4s, v24.4s
        scvtf   v16.4s, v16.4s
        fmul    v16.4s, v16.4s, v20.4s
        cbz     residual, 4f
        add4    v16, 0
4:      cbz     slope, 4f
        leaky   v28, v4, v5, v16
4:      round4_s16 v16
        cmp     channels, #4
        b.lo    8f
        str     d16, [to]
        next
        b.ne    7b
        add     sums, sums, #16
        add     out, out, #8
        add     x12, residual, #8
        cmp     residual, #0
        csel    residual, x12, residual, ne
        subs    channels, channels, #4
        b.ne    6b
        ret

        // Exactly as many as there are.
8:      mov     x16, to
        tbz     channels, #1, 4f
        str     s16, [x16], #4
        ext     v16.16b, v16.16b, v16.16b, #4
4:      tbz     channels, #0, 4f
        str     h16, [x16]
4:      next
        b.ne    7b
9:      ret
endfunc n8_output_s32_s16_neon
