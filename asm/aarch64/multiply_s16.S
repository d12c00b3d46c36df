// SPDX-License-Identifier: Apache-2.0
//
// v = fmul(fmul((float)(a[i] - a_zero_point), (float)(b[i] - b_zero_point)), a_scale), or scales[i]
//     in its place
// out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)                       (16)
//
//   void n8_multiply_s16_neon(const struct n8_add_s16_args *args);
//
// Eight values at a time; what is left is eight again, which end with the last and were loaded
// first, as `out` may be an operand. Fewer than eight go one by one.
//
// Bounds: a difference of int16 fits int32, and int32 to float is exact for it; round8_s16.
// Registers: x0-x6, v0-v7, v16-v21, v24, v25, see below; v3 and v4 scales, v5 slope.
// Stack: none. Reads and writes exactly `count` values.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, a, b_, left, ptr, scales

        // v20 and v21, eight int16 of each operand, to the int16 of v16.
.macro  product8
        centre8
        fmul    v16.4s, v16.4s, v18.4s
        fmul    v17.4s, v17.4s, v19.4s
        fmul    v16.4s, v16.4s, v3.4s
        fmul    v17.4s, v17.4s, v4.4s
        leaky   v5, v18, v20, v16
        leaky   v5, v19, v21, v17
        round8_s16 v16, v17
.endm

func    n8_multiply_s16_neon
        ldr     w1, [args, #N8_OFF_AW_ZERO_POINT]
        ldp     w2, w3, [args, #N8_OFF_AW_LO]
        set_limits_s16 w1, w2, w3
        ldr     w1, [args, #N8_OFF_AW_A_SCALE]
        dup     v3.4s, w1
        dup     v4.4s, w1
        ldr     w1, [args, #N8_OFF_AW_SLOPE]
        dup     v5.4s, w1
        ldp     w1, w2, [args, #N8_OFF_AW_A_ZERO_POINT]
        dup     v6.4s, w1
        dup     v7.4s, w2
        ldp     out, a, [args, #N8_OFF_AW_OUT]
        ldp     b_, left, [args, #N8_OFF_AW_B]
        ldr     scales, [args, #N8_OFF_AW_SCALES]
        subs    left, left, #8
        b.lo    4f
        lsl     ptr, left, #1
        ldr     q24, [a, ptr]
        ldr     q25, [b_, ptr]

1:      ldr     q20, [a], #16
        ldr     q21, [b_], #16
        cbz     scales, 2f
        ldp     q3, q4, [scales], #32
2:      product8
        str     q16, [out], #16
        subs    left, left, #8
        b.hs    1b
        adds    left, left, #8
        b.eq    7f
        mov     v20.16b, v24.16b
        mov     v21.16b, v25.16b
        cbz     scales, 3f
        add     scales, scales, left, lsl #2
        ldp     q3, q4, [scales, #-32]
3:      product8
        add     out, out, left, lsl #1
        str     q16, [out, #-16]
        ret

4:      adds    left, left, #8
        b.eq    7f
5:      ldr     h20, [a], #2
        ldr     h21, [b_], #2
        cbz     scales, 6f
        ldr     s3, [scales], #4
6:      product8
        str     h16, [out], #2
        subs    left, left, #1
        b.ne    5b
7:      ret
endfunc n8_multiply_s16_neon
