// SPDX-License-Identifier: Apache-2.0
//
// Pointwise operations of int16:
//
//   add        v = fadd(fmul((float)(a[i] - a_zero_point), a_scale),
//                       fmul((float)(b[i] - b_zero_point), b_scale))                           (6)
//   multiply   v = fmul(fmul((float)(a[i] - a_zero_point), (float)(b[i] - b_zero_point)), a_scale),
//                  or scales[i] in its place                                                  (16)
//              out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)
//
//   void n8_..._s16_neon(const struct n8_add_s16_args *args);
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

        // The operations, from the floats of a in v16 and v17, of b in v18 and v19, to v16 and v17.
.macro  sum
        on16    fmul, v3.s[0], v3.s[0], v4.s[0], v4.s[0]
        fadd    v16.4s, v16.4s, v18.4s
        fadd    v17.4s, v17.4s, v19.4s
.endm

.macro  product
        fmul    v16.4s, v16.4s, v18.4s
        fmul    v17.4s, v17.4s, v19.4s
        fmul    v16.4s, v16.4s, v3.4s
        fmul    v17.4s, v17.4s, v4.4s
.endm

        // v20 and v21, eight int16 of each operand, to the int16 of v16.
.macro  eight   operation
        centre8
        \operation
        fmul    v18.4s, v16.4s, v5.s[0]
        fmul    v19.4s, v17.4s, v5.s[0]
        fcmlt   v20.4s, v16.4s, #0.0
        fcmlt   v21.4s, v17.4s, #0.0
        bit     v16.16b, v18.16b, v20.16b
        bit     v17.16b, v19.16b, v21.16b
        round8_s16 v16, v17
.endm

        // The next scales, of a product whose values have scales of their own.
.macro  load_scales operation, first, second
    .ifc \operation, product
        cbz     scales, 9f
        \first
        \second
9:
    .endif
.endm

.macro  pointwise name, operation
func    n8_\name
        ldr     w1, [args, #N8_OFF_AW_ZERO_POINT]
        ldp     w2, w3, [args, #N8_OFF_AW_LO]
        set_limits_s16 w1, w2, w3
        ldp     s3, s4, [args, #N8_OFF_AW_A_SCALE]
        ldr     s5, [args, #N8_OFF_AW_SLOPE]
    .ifc \operation, product
        dup     v3.4s, v3.s[0]
        mov     v4.16b, v3.16b
        ldr     scales, [args, #N8_OFF_AW_SCALES]
    .endif
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
        load_scales \operation, "ldp q3, q4, [scales], #32"
        eight   \operation
        str     q16, [out], #16
        subs    left, left, #8
        b.hs    1b
        adds    left, left, #8
        b.eq    5f
        mov     v20.16b, v24.16b
        mov     v21.16b, v25.16b
        load_scales \operation, "add scales, scales, left, lsl #2", "ldp q3, q4, [scales, #-32]"
        eight   \operation
        add     out, out, left, lsl #1
        str     q16, [out, #-16]
        ret

3:      adds    left, left, #8
        b.eq    5f
4:      ldr     h20, [a], #2
        ldr     h21, [b_], #2
        load_scales \operation, "ldr s3, [scales], #4"
        eight   \operation
        str     h16, [out], #2
        subs    left, left, #1
        b.ne    4b
5:      ret
endfunc n8_\name
.endm

pointwise add_s16_neon, sum
pointwise multiply_s16_neon, product
