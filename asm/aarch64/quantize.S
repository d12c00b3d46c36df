// SPDX-License-Identifier: Apache-2.0
//
// Between float and int8 or int16, and from the sums of a layer to float:
//
//   quantize     out[i] = clamp(rne(in[i] * inverse) + zero_point, lo, hi)                     (2)
//   dequantize   out[i] = fmul((float)(in[i] - zero_point), scale)                             (1)
//   of sums      out[p][c] = fadd(fmul((float) in[p][c], scale[c]), bias[c])                   (4)
//
// Each reads and writes exactly what there is.
#include "asm.h"

        registers x, 0, out, in, count

        registers v, 4, f0, f1, f2, f3
        registers q, 4, f0q, f1q, f2q, f3q
        registers v, 16, next0, next1, next2, next3, low, high
        registers q, 16, next0q, next1q, next2q, next3q, lowq
f0s     .req s4
f0b     .req b4

// void n8_quantize_f32_s8_neon(int8_t *out, const float *in, size_t count, float inverse,
//                              int32_t zero_point, int32_t lo, int32_t hi);
//
// Bounds: fcvtns gives 0 for NaN and saturates to 32 bits; every further step saturates to
//   16 and then 8 bits, so it never wraps and lo, hi within int8 see the right side.
// Registers: x0-x2, w3-w5, s0 the arguments; x6 0, and then 16; x7 64, and then 0; v0 inverse, v1 zero
//   point (16 bits), v2 lo, v3 hi; v16-v19 sixteen floats, in v4-v7 until they are int16, and in v20,
//   v21 until they are bytes.
// Stack: none.
// The caller proves -128 <= lo <= zero_point <= hi <= 127.
        registers v, 0, inverse, zp, qlo, qhi
        registers x, 6, step, block

func    n8_quantize_f32_s8_neon
        // Constants fill whole vectors; only the low halves of the integer arguments count.
        dup     zp.8h, w3
        dup     qlo.16b, w4
        dup     qhi.16b, w5
        subs    count, count, #16
        b.lo    2f

        // Sixteen floats become int16 in one round and bytes in the next, so that in-order cores
        // always have something to do. What the first round stores, the second one overwrites.
        mov     step, #0
        mov     block, #64
        ldp     next0q, next1q, [in]
        ldp     next2q, next3q, [in, #32]
1:      sqadd   low.8h, f0.8h, zp.8h
        sqadd   high.8h, f2.8h, zp.8h
        fmul    f0.4s, next0.4s, inverse.s[0]
        subs    count, count, #16
        csel    block, block, xzr, ge           // after the last ones the same again
        sqxtn   low.8b, low.8h
        fmul    f1.4s, next1.4s, inverse.s[0]
        add     in, in, block
        fmul    f2.4s, next2.4s, inverse.s[0]
        fmul    f3.4s, next3.4s, inverse.s[0]
        ldp     next0q, next1q, [in]
        sqxtn2  low.16b, high.8h
        fcvtns  f0.4s, f0.4s
        fcvtns  f1.4s, f1.4s
        fcvtns  f2.4s, f2.4s
        ldp     next2q, next3q, [in, #32]
        smax    low.16b, low.16b, qlo.16b
        fcvtns  f3.4s, f3.4s
        sqxtn   f0.4h, f0.4s
        smin    low.16b, low.16b, qhi.16b
        cmn     count, #16
        sqxtn   f2.4h, f2.4s
        str     lowq, [out]
        add     out, out, step
        sqxtn2  f0.8h, f1.4s
        mov     step, #16
        sqxtn2  f2.8h, f3.4s
        b.ge    1b
        add     in, in, #64
        add     count, count, #16

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

// void n8_dequantize_s8_f32_neon(float *out, const int8_t *in, size_t count, float scale,
//                                int32_t zero_point);
//
// Bounds: |in - zero_point| <= 255 fits int16, and every step but the product is exact.
// Registers: x0-x2, w3, s0 the arguments; v0 scale, v1 zero point (16 bits), v4-v7, v20, v21
//   sixteen values.
// Stack: none.
// The caller proves -128 <= zero_point <= 127.
scale   .req v0
lowb    .req b20

func    n8_dequantize_s8_f32_neon
        dup     zp.8h, w3
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
        in_place scvtf, f0.4s, f1.4s, f2.4s, f3.4s
        each    fmul, scale.s[0], f0.4s, f1.4s, f2.4s, f3.4s
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

// void n8_quantize_f32_s16_neon(int16_t *out, const float *in, size_t count, float inverse,
//                               int32_t zero_point, int32_t lo, int32_t hi);
// void n8_dequantize_s16_f32_neon(float *out, const int16_t *in, size_t count, float scale,
//                                 int32_t zero_point);
//
// Eight values at a time; what is left is eight again, which end with the last. Fewer than eight go
// one by one.
//
// Bounds: a difference of int16 fits int32, and int32 to float is exact for it; set_limits_s16.
// Registers: x0-x5, s0 the arguments; v0-v2 the limits, v3 inverse, v4-v5 values; or v0 scale, v1
//   zero point, v2-v3 values.
// Stack: none.

        // All values by the macros \eight and \one; those in memory have 1 << a shift bytes.
.macro  by_eights eight, one, in_shift, out_shift
        subs    count, count, #8
        b.lo    2f
1:      \eight
        cbz     count, 4f
        subs    count, count, #8
        b.hs    1b
        add     in, in, count, lsl #\in_shift   // below 0: back
        add     out, out, count, lsl #\out_shift
        mov     count, #0
        b       1b

2:      adds    count, count, #8
        b.eq    4f
3:      \one
        subs    count, count, #1
        b.ne    3b
4:      ret
.endm

.macro  quantize_eight
        ldp     q4, q5, [in], #32
        fmul    v4.4s, v4.4s, v3.s[0]
        fmul    v5.4s, v5.4s, v3.s[0]
        round8_s16 v4, v5
        str     q4, [out], #16
.endm

.macro  quantize_one
        ldr     s4, [in], #4
        fmul    v4.4s, v4.4s, v3.s[0]
        round4_s16 v4
        str     h4, [out], #2
.endm

func    n8_quantize_f32_s16_neon
        mov     v3.16b, v0.16b                  // inverse
        set_limits_s16 w3, w4, w5
        by_eights quantize_eight, quantize_one, 2, 1
endfunc n8_quantize_f32_s16_neon

.macro  floats4 v
        sub     \v\().4s, \v\().4s, v1.4s
        scvtf   \v\().4s, \v\().4s
        fmul    \v\().4s, \v\().4s, v0.s[0]
.endm

.macro  dequantize_eight
        ldr     q3, [in], #16
        sxtl    v2.4s, v3.4h
        sxtl2   v3.4s, v3.8h
        floats4 v2
        floats4 v3
        stp     q2, q3, [out], #32
.endm

.macro  dequantize_one
        ldr     h2, [in], #2
        sxtl    v2.4s, v2.4h
        floats4 v2
        str     s2, [out], #4
.endm

func    n8_dequantize_s16_f32_neon
        dup     v1.4s, w3
        by_eights dequantize_eight, dequantize_one, 1, 2
endfunc n8_dequantize_s16_f32_neon

// void n8_dequantize_s32_f32_neon(float *out, const int32_t *in, size_t pixels,
//                                 size_t channels, const float *scale, const float *bias);
//
// Bounds: scvtf rounds to nearest even (7); product and sum are rounded one after the other.
// Registers: x0 out, x1 in, x2 pixels, x3 channels, x4 scale, x5 bias (NULL adds 0);
//   x6 scale cursor, x7 bias cursor, x8 channels left, x9 and x10 bias steps;
//   v0-v1 values, v2-v3 scale, v4-v5 bias.
// Stack: 16 bytes, zeros that stand for a missing bias.
// Nothing to prove.
        registers x, 2, pixels, channels, scale_base, bias_base, scales, bias
        registers x, 8, left, step4, step1

        registers v, 0, value0, value1, scale0, scale1, bias0, bias1
        registers q, 0, value0q, value1q, scale0q, scale1q, bias0q, bias1q
value0s .req s0
scale0s .req s2
bias0s  .req s4

func    n8_dequantize_s32_f32_neon
        // Without a bias the cursor stands still on four zeros.
        stp     xzr, xzr, [sp, #-16]!
        .cfi_def_cfa_offset 16
        mov     step4, #16
        mov     step1, #4
        cbnz    bias_base, 1f
        mov     bias_base, sp
        mov     step4, #0
        mov     step1, #0
1:      cbz     pixels, 7f
        cbz     channels, 7f

        // One pixel: eight channels at a time in two chains.
2:      mov     scales, scale_base
        mov     bias, bias_base
        subs    left, channels, #8
        b.lo    4f
3:      ldr     bias0q, [bias]
        add     bias, bias, step4
        ldr     bias1q, [bias]
        add     bias, bias, step4
        ldp     value0q, value1q, [in], #32
        ldp     scale0q, scale1q, [scales], #32
        subs    left, left, #8
        scvtf   value0.4s, value0.4s
        scvtf   value1.4s, value1.4s
        fmul    value0.4s, value0.4s, scale0.4s
        fmul    value1.4s, value1.4s, scale1.4s
        fadd    value0.4s, value0.4s, bias0.4s
        fadd    value1.4s, value1.4s, bias1.4s
        stp     value0q, value1q, [out], #32
        b.hs    3b

        // Its last 0 to 7 channels one by one.
4:      adds    left, left, #8
        b.eq    6f
5:      ldr     value0s, [in], #4
        ldr     scale0s, [scales], #4
        ldr     bias0s, [bias]
        add     bias, bias, step1
        subs    left, left, #1
        scvtf   value0s, value0s
        fmul    value0s, value0s, scale0s
        fadd    value0s, value0s, bias0s
        str     value0s, [out], #4
        b.ne    5b
6:      subs    pixels, pixels, #1
        b.ne    2b

7:      add     sp, sp, #16
        .cfi_def_cfa_offset 0
        ret
endfunc n8_dequantize_s32_f32_neon
