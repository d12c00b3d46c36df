// SPDX-License-Identifier: Apache-2.0
//
// out[i] = fmul((float)(in[i] - zero_point), scale)                                     (1)
//
//   void n8_dequantize_s8_f32_neon(float *out, const int8_t *in, size_t count, float scale,
//                                  int32_t zero_point);
//
// Sixteen values at a time; what is left is sixteen again, which end with the last. Fewer than
// sixteen go one by one.
//
// Bounds: |in - zero_point| <= 255 fits int16, and every step but the product is exact.
// Registers: r0 out, r1 in, r2 count, r3 zero point; q0 scale, d2 zero point (8 bits), q2-q3 bytes and
//   differences, q8-q11 values.
// Stack: none.
// The caller proves -128 <= zero_point <= 127. Reads and writes exactly `count`.
#include "asm.h"

#define out     r0
#define in      r1
#define count   r2
#define zp_arg  r3

func    n8_dequantize_s8_f32_neon
        take_float
        vdup.8  d2, zp_arg
        subs    count, count, #16
        blo     2f
1:      vld1.8  {d6-d7}, [in]!
        subs    count, count, #16
        vsubl.s8 q2, d6, d2
        vsubl.s8 q3, d7, d2
        vmovl.s16 q8, d4
        vmovl.s16 q9, d5
        vmovl.s16 q10, d6
        vmovl.s16 q11, d7
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
        add     in, in, count                   // below 0: back
        add     out, out, count, lsl #2
        mov     count, #0
        b       1b

2:      adds    count, count, #16
        bxeq    lr
3:      vld1.8  {d4[0]}, [in]!
        subs    count, count, #1
        vsubl.s8 q8, d4, d2
        vmovl.s16 q8, d16
        vcvt.f32.s32 d16, d16
        vmul.f32 d16, d16, d0[0]
        vst1.32 {d16[0]}, [out]!
        bne     3b
        bx      lr
endfunc n8_dequantize_s8_f32_neon
