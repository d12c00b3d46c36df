// SPDX-License-Identifier: Apache-2.0
//
// From floats to integers, (2), and back, (1) and (4). Each kernel reads and writes exactly the
// values that exist.
#include "asm.h"

        registers r, 0, out, in, count, zp_arg
limit   .req r12

// The end of a loop at 1 over sixteen values, of 1 << \in_shift and 1 << \out_shift bytes. The last
// ones are sixteen again, which end with the last value. Fewer than sixteen, from 2 on, go one by
// one: what follows.
.macro  next_sixteen in_shift, out_shift
        bhs     1b
        cmn     count, #16
        bxeq    lr
        add     in, in, count, lsl #\in_shift   // below 0: back
        add     out, out, count, lsl #\out_shift
        mov     count, #0
        b       1b

2:      adds    count, count, #16
        bxeq    lr
.endm

// out[i] = clamp(rne(in[i] * inverse) + zero_point, lo, hi)                             (2)
//
//   void n8_quantize_f32_s8_neon(int8_t *out, const float *in, size_t count, float inverse,
//                                int32_t zero_point, int32_t lo, int32_t hi);
//   void n8_quantize_f32_s16_neon(int16_t *out, ...
//
// Bounds: as in `nearest`, where NaN becomes what (2) says.
// Registers: r0-r3, r12, see above; q0 inverse, q1-q3 as `nearest` wants them, q8-q11 values, q12
//   zero point, of as many bits as the output.
// Stack: none.
// The caller proves that lo <= zero_point <= hi fit the output.
.macro  quantize name, bits
func    n8_\name
        take_float
        ldr     limit, [sp, #FOLLOWING]
        set_limit q1, limit, zp_arg
        ldr     limit, [sp, #FOLLOWING + 4]
        set_limit q2, limit, zp_arg
        set_rounding
        vdup.\bits q12, zp_arg
        subs    count, count, #16
        blo     2f
1:
    .if \bits == 8
        // Each register gets every fourth value, so that their bytes form words in order.
        vld4.32 {d16, d18, d20, d22}, [in]!
        vld4.32 {d17, d19, d21, d23}, [in]!
    .else
        // Even values and odd ones: the low halves form words in order.
        vld2.32 {d16-d19}, [in]!
        vld2.32 {d20-d23}, [in]!
    .endif
        subs    count, count, #16
        each    vmul.f32, d0[0], q8, q9, q10, q11
        nearest q8, q9, q10, q11
        vsli.32 q8, q9, #\bits
        vsli.32 q10, q11, #\bits
    .if \bits == 8
        vsli.32 q8, q10, #16
        vadd.i8 q8, q8, q12
        vst1.8  {d16-d17}, [out]!
        next_sixteen 2, 0
    .else
        vadd.i16 q8, q8, q12
        vadd.i16 q9, q10, q12
        vst1.16 {d16-d19}, [out]!
        next_sixteen 2, 1
    .endif
3:      vld1.32 {d16[0]}, [in]!
        subs    count, count, #1
        vmul.f32 d16, d16, d0[0]
        nearest2 d16
        vadd.i\bits d16, d16, d24
        vst1.\bits {d16[0]}, [out]!
        bne     3b
        bx      lr
endfunc n8_\name
.endm

quantize quantize_f32_s8_neon, 8
quantize quantize_f32_s16_neon, 16

// out[i] = fmul((float)(in[i] - zero_point), scale)                                     (1)
//
//   void n8_dequantize_s8_f32_neon(float *out, const int8_t *in, size_t count, float scale,
//                                  int32_t zero_point);
//   void n8_dequantize_s16_f32_neon(float *out, const int16_t *in, ...
//
// Bounds: a difference fits twice the bits of the input, and all but the product is exact.
// Registers: r0-r3, see above; q0 scale, d2 zero point, of as many bits as the input, q2-q3 input,
//   of int8 then differences, q8-q11 values.
// Stack: none.
// The caller proves that the zero point fits the input.
.macro  dequantize name, bits
func    n8_\name
        take_float
        vdup.\bits d2, zp_arg
        subs    count, count, #16
        blo     2f
1:
    .if \bits == 8
        vld1.8  {d6-d7}, [in]!
        subs    count, count, #16
        vsubl.s8 q2, d6, d2
        vsubl.s8 q3, d7, d2
        vmovl.s16 q8, d4
        vmovl.s16 q9, d5
        vmovl.s16 q10, d6
        vmovl.s16 q11, d7
    .else
        vld1.16 {d4-d7}, [in]!
        subs    count, count, #16
        vsubl.s16 q8, d4, d2
        vsubl.s16 q9, d5, d2
        vsubl.s16 q10, d6, d2
        vsubl.s16 q11, d7, d2
    .endif
        to_float q8, q9, q10, q11
        each    vmul.f32, d0[0], q8, q9, q10, q11
        vst1.32 {d16-d19}, [out]!
        vst1.32 {d20-d23}, [out]!
    .if \bits == 8
        next_sixteen 0, 2
    .else
        next_sixteen 1, 2
    .endif
3:      vld1.\bits {d4[0]}, [in]!
        subs    count, count, #1
        vsubl.s\bits q8, d4, d2
    .if \bits == 8
        vmovl.s16 q8, d16
    .endif
        to_float d16
        each    vmul.f32, d0[0], d16
        vst1.32 {d16[0]}, [out]!
        bne     3b
        bx      lr
endfunc n8_\name
.endm

dequantize dequantize_s8_f32_neon, 8
dequantize dequantize_s16_f32_neon, 16

// out[p][c] = fadd(fmul((float) in[p][c], scale[c]), bias[c])                           (4)
//
//   void n8_dequantize_s32_f32_neon(float *out, const int32_t *in, size_t pixels,
//                                   size_t channels, const float *scale, const float *bias);
//
// Bounds: vcvt rounds to nearest even (7); vmla rounds the product and then the sum.
// Registers: r0-r9, r12, see below; q0-q1 scale, q2-q3 values, q8-q9 bias and results.
// Stack: 56 bytes, what it preserves and zeros instead of a missing bias.
        registers r, 2, pixels, channels, scale_base, bias_base, scale_cursor, bias_cursor
        // bias_base: NULL adds 0
        registers r, 8, step8, step1
        // step8: of the bias
left    .req r12                // channels

func    n8_dequantize_s32_f32_neon
        save    r4, r5, r6, r7, r8, r9
        ldr     scale_base, [sp, #24]
        ldr     bias_base, [sp, #28]
        // Without a bias the cursor stands still on eight zeros.
        fill    vmov.i32, #0, q2, q3
        vpush   {d4-d7}
        .cfi_adjust_cfa_offset 32
        mov     step8, #32
        mov     step1, #4
        cmp     bias_base, #0
        moveq   bias_base, sp
        moveq   step8, #0
        moveq   step1, #0
        cmp     pixels, #0
        cmpne   channels, #0
        beq     6f

        // One pixel: eight channels at a time.
1:      mov     scale_cursor, scale_base
        mov     bias_cursor, bias_base
        subs    left, channels, #8
        blo     3f
2:      vld1.32 {d4-d7}, [in]!
        vld1.32 {d0-d3}, [scale_cursor]!
        vld1.32 {d16-d19}, [bias_cursor], step8
        subs    left, left, #8
        to_float q2, q3
        vmla.f32 q8, q2, q0
        vmla.f32 q9, q3, q1
        vst1.32 {d16-d19}, [out]!
        bhs     2b

        // Its last 0 to 7 channels one by one.
3:      adds    left, left, #8
        beq     5f
4:      vld1.32 {d4[0]}, [in]!
        vld1.32 {d0[0]}, [scale_cursor]!
        vld1.32 {d16[0]}, [bias_cursor], step1
        subs    left, left, #1
        to_float d4
        vmla.f32 d16, d4, d0
        vst1.32 {d16[0]}, [out]!
        bne     4b
5:      subs    pixels, pixels, #1
        bne     1b

6:      add     sp, sp, #32
        .cfi_adjust_cfa_offset -32
        restore r4, r5, r6, r7, r8, r9
        bx      lr
endfunc n8_dequantize_s32_f32_neon
