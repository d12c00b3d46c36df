// SPDX-License-Identifier: Apache-2.0
//
// out[i] = fmul((float)(in[i] - zero_point), scale)                                     (1)
//
//   void n8_dequantize_s8_f32_neon(float *out, const int8_t *in, size_t count, float scale,
//                                  int32_t zero_point);
//
// Bounds: |in - zero_point| <= 255 fits int16, and every step but the product is exact.
// Registers: x0 out, x1 in, x2 count, s0 scale, w3 zero_point;
//   v0 scale, v1 zero point (16 bits), v2-v7 sixteen values.
// Stack: none.
// The caller proves -128 <= zero_point <= 127. Reads and writes exactly `count`.
#include "asm.h"

#define out        x0
#define in         x1
#define count      x2
#define zp_arg     w3

#define scale      v0
#define zp         v1
#define low        v2
#define high       v3
#define f0         v4
#define f1         v5
#define f2         v6
#define f3         v7
#define f0q        q4
#define f1q        q5
#define f2q        q6
#define f3q        q7
#define f0s        s4
#define lowq       q2
#define lowb       b2

func    n8_dequantize_s8_f32_neon
        dup     zp.8h, zp_arg
        subs    count, count, #16
        b.lo    2f

        // Widening once before and once after the subtraction keeps it in 16 bits.
1:      ldr     lowq, [in], #16
        subs    count, count, #16
        sxtl2   high.8h, low.16b
        sxtl    low.8h, low.8b
        sub     low.8h, low.8h, zp.8h
        sub     high.8h, high.8h, zp.8h
        sxtl    f0.4s, low.4h
        sxtl2   f1.4s, low.8h
        sxtl    f2.4s, high.4h
        sxtl2   f3.4s, high.8h
        scvtf   f0.4s, f0.4s
        scvtf   f1.4s, f1.4s
        scvtf   f2.4s, f2.4s
        scvtf   f3.4s, f3.4s
        fmul    f0.4s, f0.4s, scale.s[0]
        fmul    f1.4s, f1.4s, scale.s[0]
        fmul    f2.4s, f2.4s, scale.s[0]
        fmul    f3.4s, f3.4s, scale.s[0]
        stp     f0q, f1q, [out], #32
        stp     f2q, f3q, [out], #32
        b.hs    1b

        // The last 0 to 15 one by one, in lane 0 of the same steps.
2:      adds    count, count, #16
        b.eq    4f
3:      ldr     lowb, [in], #1
        subs    count, count, #1
        sxtl    low.8h, low.8b
        sub     low.8h, low.8h, zp.8h
        sxtl    f0.4s, low.4h
        scvtf   f0.4s, f0.4s
        fmul    f0.4s, f0.4s, scale.s[0]
        str     f0s, [out], #4
        b.ne    3b
4:      ret
endfunc n8_dequantize_s8_f32_neon
