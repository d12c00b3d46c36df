// SPDX-License-Identifier: Apache-2.0
//
// out[i] = fmul((float)(in[i] - zero_point), scale)                                     (1)
//
//   void n8_dequantize_s16_f32_neon(float *out, const int16_t *in, size_t count, float scale,
//                                   int32_t zero_point);
//
// Eight values at a time; what is left is eight again, which end with the last. Fewer than eight go
// one by one.
//
// Bounds: a difference of int16 fits int32, and int32 to float is exact for it.
// Registers: x0-x3, v0-v3, see below.
// Stack: none. Reads and writes exactly `count` values.
#include "asm.h"

#define out   x0
#define in    x1
#define count x2

        // v0 scale, v1 zero point
.macro  floats4 v
        sub     \v\().4s, \v\().4s, v1.4s
        scvtf   \v\().4s, \v\().4s
        fmul    \v\().4s, \v\().4s, v0.s[0]
.endm

func    n8_dequantize_s16_f32_neon
        dup     v1.4s, w3
        subs    count, count, #8
        b.lo    2f
1:      ldr     q3, [in], #16
        sxtl    v2.4s, v3.4h
        sxtl2   v3.4s, v3.8h
        floats4 v2
        floats4 v3
        stp     q2, q3, [out], #32
        cbz     count, 4f
        subs    count, count, #8
        b.hs    1b
        add     in, in, count, lsl #1           // below 0: back
        add     out, out, count, lsl #2
        mov     count, #0
        b       1b

2:      adds    count, count, #8
        b.eq    4f
3:      ldr     h2, [in], #2
        sxtl    v2.4s, v2.4h
        floats4 v2
        str     s2, [out], #4
        subs    count, count, #1
        b.ne    3b
4:      ret
endfunc n8_dequantize_s16_f32_neon
