// SPDX-License-Identifier: Apache-2.0
//
// out[i] = clamp(rne(in[i] * inverse) + zero_point, lo, hi)                             (2)
//
//   void n8_quantize_f32_s16_neon(int16_t *out, const float *in, size_t count, float inverse,
//                                 int32_t zero_point, int32_t lo, int32_t hi);
//
// Eight values at a time; what is left is eight again, which end with the last. Fewer than eight go
// one by one.
//
// Bounds: round_s16.inc.
// Registers: x0-x5, v0-v5, see below.
// Stack: none. Reads and writes exactly `count` values.
#include "asm.h"
#include "round_s16.inc"

#define out   x0
#define in    x1
#define count x2

func    n8_quantize_f32_s16_neon
        mov     v3.16b, v0.16b                  // inverse
        set_limits w3, w4, w5
        subs    count, count, #8
        b.lo    2f
1:      ldp     q4, q5, [in], #32
        fmul    v4.4s, v4.4s, v3.s[0]
        fmul    v5.4s, v5.4s, v3.s[0]
        round8  v4, v5
        str     q4, [out], #16
        cbz     count, 4f
        subs    count, count, #8
        b.hs    1b
        add     in, in, count, lsl #2           // below 0: back
        add     out, out, count, lsl #1
        mov     count, #0
        b       1b

2:      adds    count, count, #8
        b.eq    4f
3:      ldr     s4, [in], #4
        fmul    v4.4s, v4.4s, v3.s[0]
        round4  v4
        str     h4, [out], #2
        subs    count, count, #1
        b.ne    3b
4:      ret
endfunc n8_quantize_f32_s16_neon
