// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float)(sums[p][n] + bias[n]), multiplier[n])
// v = fadd(v, fmul((float)(residual[p][n] - residual_zero_point), residual_scale))            (6)
// v = v < 0 ? fmul(v, slope[n]) : v                                                          (5b)
// out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                              (5)
// without bias, residual or slope where the pointer to it is NULL.
//
//   void n8_output_s32_s16_neon(const struct n8_output_args *args);
//
// Eight channels of all pixels at a time, then four, at last fewer: what belongs to channels stays
// in registers.
//
// Bounds: adding the bias wraps; vmla rounds the product and then the sum; `nearest` in asm.h.
//   Reads up to the next multiple of 4 channels; writes exactly `channels`.
// Registers: below; d0 residual scale, d1 residual zero point (16 bits), q1-q3 as `nearest` wants
//   them, q4 zero point (16 bits), q8-q9 multipliers, q10-q11 biases, q12-q13 slopes, of eight
//   channels the even ones and the odd ones, q14-q15 results, q5-q7 scratch.
// Stack: 100 bytes, what it preserves.
#include "asm.h"

        registers r, 0, args, out, out_stride, sums, sums_stride, residual, residual_stride
        registers r, 8, to, from, added, left, channels
        // to, from, added: the output of this pixel, its accumulators, its residual
        // left: pixels; channels: left
offset  .req r7                 // of these channels, in arrays of 32-bit values
ptr     .req lr
slope   .req lr

// What the pixels of the next channels share, and the first pixel.
.macro  begin_channels load, multipliers, biases, slopes
        ldr     ptr, [args, #N8_OFF_OW_MULTIPLIER]
        add     ptr, ptr, offset
        \load   {\multipliers}, [ptr]
        ldr     ptr, [args, #N8_OFF_OW_BIAS]
        cmp     ptr, #0
        beq     2f
        add     ptr, ptr, offset
        \load   {\biases}, [ptr]
2:      ldr     slope, [args, #N8_OFF_OW_SLOPE]
        cmp     slope, #0
        beq     2f
        add     slope, slope, offset
        \load   {\slopes}, [slope]
2:      mov     to, out
        mov     from, sums
        mov     added, residual
        ldr     left, [args, #N8_OFF_OW_PIXELS]
.endm

func    n8_output_s32_s16_neon
        push_all
        load_range N8_OFF_OW, out, ptr
        vdup.16 q4, out
        ldr     ptr, [args, #N8_OFF_OW_RESIDUAL_SCALE]
        vdup.32 d0, ptr
        ldr     ptr, [args, #N8_OFF_OW_RESIDUAL_ZERO_POINT]
        vdup.16 d1, ptr
        ldr     out, [args, #N8_OFF_OW_OUT]
        ldr     out_stride, [args, #N8_OFF_OW_OUT_STRIDE]
        ldr     sums, [args, #N8_OFF_OW_SUMS]
        ldr     sums_stride, [args, #N8_OFF_OW_SUMS_STRIDE]
        ldr     residual, [args, #N8_OFF_OW_RESIDUAL]
        ldr     residual_stride, [args, #N8_OFF_OW_RESIDUAL_STRIDE]
        ldr     channels, [args, #N8_OFF_OW_CHANNELS]
        mov     offset, #0
        fill    vmov.i32, #0, q10, q11
        subs    channels, channels, #8
        blo     5f

1:      begin_channels vld2.32, d16-d19, d20-d23, d24-d27
3:      vld2.32 {d28-d31}, [from], sums_stride
        vadd.i32 q14, q14, q10
        vadd.i32 q15, q15, q11
        to_float q14, q15
        vmul.f32 q14, q14, q8
        vmul.f32 q15, q15, q9
        cmp     residual, #0
        beq     4f
        vld2.16 {d10-d11}, [added], residual_stride
        vsubl.s16 q6, d10, d1
        vsubl.s16 q7, d11, d1
        to_float q6, q7
        vmla.f32 q14, q6, d0[0]
        vmla.f32 q15, q7, d0[0]
4:      cmp     slope, #0
        beq     4f
        vmul.f32 q5, q14, q12
        vmul.f32 q6, q15, q13
        vclt.f32 q7, q14, #0
        vbit    q14, q5, q7
        vclt.f32 q7, q15, #0
        vbit    q15, q6, q7
4:      nearest q14, q15
        subs    left, left, #1
        vsli.32 q14, q15, #16
        vadd.i16 q14, q14, q4
        vst1.16 {d28-d29}, [to], out_stride
        bne     3b
        add     sums, sums, #32
        add     out, out, #16
        add     offset, offset, #32
        cmp     residual, #0
        addne   residual, residual, #16
        subs    channels, channels, #8
        bhs     1b

5:      adds    channels, channels, #8
        beq     9f
6:      begin_channels vld1.32, d16-d17, d20-d21, d24-d25
7:      vld1.32 {d28-d29}, [from], sums_stride
        vadd.i32 q14, q14, q10
        vcvt.f32.s32 q14, q14
        vmul.f32 q14, q14, q8
        cmp     residual, #0
        beq     4f
        vld1.16 {d10}, [added], residual_stride
        vsubl.s16 q6, d10, d1
        vcvt.f32.s32 q6, q6
        vmla.f32 q14, q6, d0[0]
4:      cmp     slope, #0
        beq     4f
        leaky   q12, q5, q7, q14
4:      nearest2 d28
        nearest2 d29
        vmovn.i32 d28, q14
        vadd.i16 d28, d28, d8
        cmp     channels, #4
        blo     8f
        vst1.16 {d28}, [to], out_stride
        subs    left, left, #1
        bne     7b
        add     sums, sums, #16
        add     out, out, #8
        add     offset, offset, #16
        cmp     residual, #0
        addne   residual, residual, #8
        subs    channels, channels, #4
        bne     6b
        b       9f

        // Exactly the channels that exist.
8:      mov     out, to
        tst     channels, #2
        beq     4f
        vst1.32 {d28[0]}, [out]!
        vext.16 d28, d28, d28, #2
4:      tst     channels, #1
        beq     4f
        vst1.16 {d28[0]}, [out]
4:      add     to, to, out_stride
        subs    left, left, #1
        bne     7b
9:      pop_all
endfunc n8_output_s32_s16_neon
