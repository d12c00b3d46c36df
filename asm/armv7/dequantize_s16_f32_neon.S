// SPDX-License-Identifier: Apache-2.0
//
// out[i] = fmul((float)(in[i] - zero_point), scale)                                     (1)
//
//   void n8_dequantize_s16_f32_neon(float *out, const int16_t *in, size_t count, float scale,
//                                   int32_t zero_point);
//
// Sixteen values at a time; what is left is sixteen again, which end with the last. Fewer than
// sixteen go one by one.
//
// Bounds: a difference of int16 fits int32, and int32 to float is exact for it.
// Registers: r0 out, r1 in, r2 count, r3 zero point; q0 scale, d2 zero point (16 bits), q2-q3 and then
//   q8-q11 values.
// Stack: none. Reads and writes exactly `count` values.
#include "asm.h"

#define out     r0
#define in      r1
#define count   r2
#define zp_arg  r3

func    n8_dequantize_s16_f32_neon
        take_float
        vdup.16 d2, zp_arg
        subs    count, count, #16
        blo     2f
1:      vld1.16 {d4-d7}, [in]!
        subs    count, count, #16
        vsubl.s16 q8, d4, d2
        vsubl.s16 q9, d5, d2
        vsubl.s16 q10, d6, d2
        vsubl.s16 q11, d7, d2
        vcvt.f32.s32 q8, q8
        vcvt.f32.s32 q9, q9
        vcvt.f32.s32 q10, q10
        vcvt.f32.s32 q11, q11
        vmul.f32 q8, q8, d0[0]
        vmul.f32 q9, q9, d0[0]
        vmul.f32 q10, q10, d0[0]
        vmul.f32 q11, q11, d0[0]
        vst1.32 {d16-d19}, [out]!
        vst1.32 {d20-d23}, [out]!
        bhs     1b
        cmn     count, #16
        bxeq    lr
        add     in, in, count, lsl #1           // below 0: back
        add     out, out, count, lsl #2
        mov     count, #0
        b       1b

2:      adds    count, count, #16
        bxeq    lr
3:      vld1.16 {d4[0]}, [in]!
        subs    count, count, #1
        vsubl.s16 q8, d4, d2
        vcvt.f32.s32 d16, d16
        vmul.f32 d16, d16, d0[0]
        vst1.32 {d16[0]}, [out]!
        bne     3b
        bx      lr
endfunc n8_dequantize_s16_f32_neon
