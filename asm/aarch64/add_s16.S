// SPDX-License-Identifier: Apache-2.0
//
// v = fadd(fmul((float)(a[i] - a_zero_point), a_scale),
//          fmul((float)(b[i] - b_zero_point), b_scale))
// out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)                        (6)
//
//   void n8_add_s16_neon(const struct n8_add_s16_args *args);
//
// Eight values at a time; what is left is eight again, which end with the last and were loaded
// first, as `out` may be an operand. Fewer than eight go one by one.
//
// Bounds: a difference of int16 fits int32, and int32 to float is exact for it; round8_s16.
// Registers: x0-x6, v0-v7, v16-v21, v24, v25, see below.
// Stack: none. Reads and writes exactly `count` values.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, a, b_, left, ptr

        // v20 and v21, eight int16 of each operand, to the int16 of v16.
.macro  sum8
        centre8
        on16    fmul, v3.s[0], v3.s[0], v4.s[0], v4.s[0]
        fadd    v16.4s, v16.4s, v18.4s
        fadd    v17.4s, v17.4s, v19.4s
        fmul    v18.4s, v16.4s, v5.s[0]
        fmul    v19.4s, v17.4s, v5.s[0]
        fcmlt   v20.4s, v16.4s, #0.0
        fcmlt   v21.4s, v17.4s, #0.0
        bit     v16.16b, v18.16b, v20.16b
        bit     v17.16b, v19.16b, v21.16b
        round8_s16 v16, v17
.endm

func    n8_add_s16_neon
        ldr     w1, [args, #N8_OFF_AW_ZERO_POINT]
        ldp     w2, w3, [args, #N8_OFF_AW_LO]
        set_limits_s16 w1, w2, w3
        ldp     s3, s4, [args, #N8_OFF_AW_A_SCALE]
        ldr     s5, [args, #N8_OFF_AW_SLOPE]
        ldp     w1, w2, [args, #N8_OFF_AW_A_ZERO_POINT]
        dup     v6.4s, w1
        dup     v7.4s, w2
        ldp     out, a, [args, #N8_OFF_AW_OUT]
        ldp     b_, left, [args, #N8_OFF_AW_B]
        subs    left, left, #8
        b.lo    3f
        lsl     ptr, left, #1
        ldr     q24, [a, ptr]
        ldr     q25, [b_, ptr]

1:      ldr     q20, [a], #16
        ldr     q21, [b_], #16
        sum8
        str     q16, [out], #16
        subs    left, left, #8
        b.hs    1b
        adds    left, left, #8
        b.eq    5f
        mov     v20.16b, v24.16b
        mov     v21.16b, v25.16b
        sum8
        add     out, out, left, lsl #1
        str     q16, [out, #-16]
        ret

3:      adds    left, left, #8
        b.eq    5f
4:      ldr     h20, [a], #2
        ldr     h21, [b_], #2
        sum8
        str     h16, [out], #2
        subs    left, left, #1
        b.ne    4b
5:      ret
endfunc n8_add_s16_neon
