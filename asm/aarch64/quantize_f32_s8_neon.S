// SPDX-License-Identifier: Apache-2.0
//
// out[i] = clamp(rne(in[i] * inverse) + zero_point, lo, hi)                             (2)
//
//   void n8_quantize_f32_s8_neon(int8_t *out, const float *in, size_t count, float inverse,
//                                int32_t zero_point, int32_t lo, int32_t hi);
//
// Bounds: fcvtns gives 0 for NaN and saturates to 32 bits; every further step saturates to
//   16 and then 8 bits, so it never wraps and lo, hi within int8 see the right side.
// Registers: x0 out, x1 in, x2 count, s0 inverse, w3 zero_point, w4 lo, w5 hi;
//   v0 inverse, v1 zero point (16 bits), v2 lo, v3 hi, v4-v7 sixteen values.
// Stack: none.
// The caller proves -128 <= lo <= zero_point <= hi <= 127. Reads and writes exactly `count`.
#include "asm.h"

#define out        x0
#define in         x1
#define count      x2
#define zp_arg     w3
#define lo_arg     w4
#define hi_arg     w5

#define inverse    v0
#define zp         v1
#define qlo        v2
#define qhi        v3
#define f0         v4
#define f1         v5
#define f2         v6
#define f3         v7
#define f0q        q4
#define f1q        q5
#define f2q        q6
#define f3q        q7
#define f0s        s4
#define f0b        b4

func    n8_quantize_f32_s8_neon
        // Constants fill whole vectors; only the low halves of the integer arguments count.
        dup     zp.8h, zp_arg
        dup     qlo.16b, lo_arg
        dup     qhi.16b, hi_arg
        subs    count, count, #16
        b.lo    2f

        // Sixteen floats become one vector of bytes; four chains hide each other's latency.
1:      ldp     f0q, f1q, [in], #32
        ldp     f2q, f3q, [in], #32
        subs    count, count, #16
        fmul    f0.4s, f0.4s, inverse.s[0]
        fmul    f1.4s, f1.4s, inverse.s[0]
        fmul    f2.4s, f2.4s, inverse.s[0]
        fmul    f3.4s, f3.4s, inverse.s[0]
        fcvtns  f0.4s, f0.4s
        fcvtns  f1.4s, f1.4s
        fcvtns  f2.4s, f2.4s
        fcvtns  f3.4s, f3.4s
        sqxtn   f0.4h, f0.4s
        sqxtn   f2.4h, f2.4s
        sqxtn2  f0.8h, f1.4s
        sqxtn2  f2.8h, f3.4s
        sqadd   f0.8h, f0.8h, zp.8h
        sqadd   f2.8h, f2.8h, zp.8h
        sqxtn   f0.8b, f0.8h
        sqxtn2  f0.16b, f2.8h
        smax    f0.16b, f0.16b, qlo.16b
        smin    f0.16b, f0.16b, qhi.16b
        str     f0q, [out], #16
        b.hs    1b

        // The last 0 to 15 one by one, in lane 0 of the same steps.
2:      adds    count, count, #16
        b.eq    4f
3:      ldr     f0s, [in], #4
        subs    count, count, #1
        fmul    f0.4s, f0.4s, inverse.s[0]
        fcvtns  f0.4s, f0.4s
        sqxtn   f0.4h, f0.4s
        sqadd   f0.8h, f0.8h, zp.8h
        sqxtn   f0.8b, f0.8h
        smax    f0.16b, f0.16b, qlo.16b
        smin    f0.16b, f0.16b, qhi.16b
        str     f0b, [out], #1
        b.ne    3b
4:      ret
endfunc n8_quantize_f32_s8_neon
