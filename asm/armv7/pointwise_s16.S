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
// Eight values at a time. The last ones are eight again, which end with the last value and were
// loaded before anything was stored, as `out` may be an operand. Fewer than eight go one by one.
//
// Bounds: a difference of int16 fits int32, and its float is exact; vmla rounds the product and
//   then the sum; `nearest` in asm.h.
// Registers: below; d0 scales of a and b, d1 slope, q1-q3 as `nearest` wants them, q12 zero point,
//   d26 that of a, d27 of b (16 bits); q6 and q7 scales of even and odd products; q8 and q9 even
//   and odd values of a and b, q10-q11, q14-q15 floats; q4 and q5 the last of a and b.
// Stack: 80 bytes, what it preserves. Reads and writes exactly `count` values.
#include "asm.h"

        registers r, 0, args, out, a, b_, ptr, scales
left    .req r12                // values, less 8 of this round
slope   .req lr                 // its bits

// The operations, from the floats of a in q10 and q11, of b in q14 and q15, to q10 and q11.
.macro  sum
        each    vmul.f32, d0[0], q10, q11
        vmla.f32 q10, q14, d0[1]
        vmla.f32 q11, q15, d0[1]
.endm

.macro  product
        vmul.f32 q10, q10, q14
        vmul.f32 q11, q11, q15
        vmul.f32 q10, q10, q6
        vmul.f32 q11, q11, q7
.endm

// q8 and q9 to the int16 of q10.
.macro  eight   operation
        vsubl.s16 q10, d16, d26
        vsubl.s16 q11, d17, d26
        vsubl.s16 q14, d18, d27
        vsubl.s16 q15, d19, d27
        to_float q10, q11, q14, q15
        \operation
        cmp     slope, #0x3f800000              // 1
        beq     7f
        leaky2  q10, q11, d1[0], q14, q15, q8, q9
7:      nearest q10, q11
        vsli.32 q10, q11, #16
        vadd.i16 q10, q10, q12
.endm

// The next scales, of a product whose values have scales of their own.
.macro  load_scales operation, first, second
    .ifc \operation, product
        cmp     scales, #0
        beq     9f
        \first
        \second
9:
    .endif
.endm

.macro  pointwise name, operation
func    n8_\name
        save    r4, r5, r6, lr
        save_double d8, d9, d10, d11, d12, d13, d14, d15
        load_range N8_OFF_AW, out, ptr
        vdup.16 q12, out
        add     ptr, args, #N8_OFF_AW_A_SCALE   // the slope comes after both scales
        vld1.32 {d0-d1}, [ptr]
        ldr     slope, [args, #N8_OFF_AW_SLOPE]
    .ifc \operation, product
        vdup.32 q6, d0[0]
        vdup.32 q7, d0[0]
        ldr     scales, [args, #N8_OFF_AW_SCALES]
    .endif
        ldr     ptr, [args, #N8_OFF_AW_A_ZERO_POINT]
        vdup.16 d26, ptr
        ldr     ptr, [args, #N8_OFF_AW_B_ZERO_POINT]
        vdup.16 d27, ptr
        ldr     out, [args, #N8_OFF_AW_OUT]
        ldr     a, [args, #N8_OFF_AW_A]
        ldr     b_, [args, #N8_OFF_AW_B]
        ldr     left, [args, #N8_OFF_AW_COUNT]
        subs    left, left, #8
        blo     3f
        add     ptr, a, left, lsl #1
        vld2.16 {d8-d9}, [ptr]
        add     ptr, b_, left, lsl #1
        vld2.16 {d10-d11}, [ptr]

1:      vld2.16 {d16-d17}, [a]!
        vld2.16 {d18-d19}, [b_]!
        load_scales \operation, "vld2.32 {d12-d15}, [scales]!"
        eight   \operation
        subs    left, left, #8
        vst1.16 {d20-d21}, [out]!
        bhs     1b
        adds    left, left, #8
        beq     5f
        vmov    q8, q4
        vmov    q9, q5
        sub     ptr, left, #8
        load_scales \operation, "add scales, scales, ptr, lsl #2", "vld2.32 {d12-d15}, [scales]"
        eight   \operation
        add     out, out, ptr, lsl #1
        vst1.16 {d20-d21}, [out]
        b       5f

3:      adds    left, left, #8
        beq     5f
4:      vld1.16 {d16[0]}, [a]!
        vld1.16 {d18[0]}, [b_]!
        load_scales \operation, "vld1.32 {d12[0]}, [scales]!"
        eight   \operation
        subs    left, left, #1
        vst1.16 {d20[0]}, [out]!
        bne     4b
5:      restore_double d8, d9, d10, d11, d12, d13, d14, d15
        pop     {r4-r6, pc}
endfunc n8_\name
.endm

pointwise add_s16_neon, sum
pointwise multiply_s16_neon, product
