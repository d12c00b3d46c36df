// SPDX-License-Identifier: Apache-2.0
//
// out[i] = clamp(rne(in[i] * inverse) + zero_point, lo, hi)                             (2)
//
//   void n8_quantize_f32_s8_neon(int8_t *out, const float *in, size_t count, float inverse,
//                                int32_t zero_point, int32_t lo, int32_t hi);
//
// Sixteen values at a time; what is left is sixteen again, which end with the last. Fewer than
// sixteen go one by one.
//
// Bounds: nearest_f32.inc, whose NaN is what (2) wants.
// Registers: r0 out, r1 in, r2 count, r3 zero point, r12 scratch; q0 inverse, q1-q3 nearest_f32.inc,
//   q8-q11 values, q12 zero point (8 bits).
// Stack: none.
// The caller proves -128 <= lo <= zero_point <= hi <= 127. Reads and writes exactly `count`.
#include "asm.h"
#include "nearest_f32.inc"

#define out     r0
#define in      r1
#define count   r2
#define zp_arg  r3
#define limit   r12

func    n8_quantize_f32_s8_neon
        take_float
        ldr     limit, [sp, #FOLLOWING]
        set_limit q1, limit, zp_arg
        ldr     limit, [sp, #FOLLOWING + 4]
        set_limit q2, limit, zp_arg
        set_rounding
        vdup.8  q12, zp_arg
        subs    count, count, #16
        blo     2f

        // The values of a register are four apart, so that their bytes form words in order.
1:      vld4.32 {d16, d18, d20, d22}, [in]!
        vld4.32 {d17, d19, d21, d23}, [in]!
        subs    count, count, #16
        vmul.f32 q8, q8, d0[0]
        vmul.f32 q9, q9, d0[0]
        vmul.f32 q10, q10, d0[0]
        vmul.f32 q11, q11, d0[0]
        nearest16 q8, q9, q10, q11
        vsli.32 q8, q9, #8
        vsli.32 q10, q11, #8
        vsli.32 q8, q10, #16
        vadd.i8 q8, q8, q12
        vst1.8  {d16-d17}, [out]!
        bhs     1b
        cmn     count, #16
        bxeq    lr
        add     in, in, count, lsl #2           // below 0: back
        add     out, out, count
        mov     count, #0
        b       1b

2:      adds    count, count, #16
        bxeq    lr
3:      vld1.32 {d16[0]}, [in]!
        subs    count, count, #1
        vmul.f32 d16, d16, d0[0]
        nearest2 d16
        vadd.i8 d16, d16, d24
        vst1.8  {d16[0]}, [out]!
        bne     3b
        bx      lr
endfunc n8_quantize_f32_s8_neon
