// SPDX-License-Identifier: Apache-2.0
//
// out[p][c] = fadd(fmul((float) in[p][c], scale[c]), bias[c])                           (4)
//
//   void n8_dequantize_s32_f32_neon(float *out, const int32_t *in, size_t pixels,
//                                   size_t channels, const float *scale, const float *bias);
//
// Bounds: scvtf rounds to nearest even (7); product and sum are rounded one after the other.
// Registers: x0 out, x1 in, x2 pixels, x3 channels, x4 scale, x5 bias (NULL adds 0);
//   x6 scale cursor, x7 bias cursor, x8 channels left, x9 and x10 bias steps;
//   v0-v1 values, v2-v3 scale, v4-v5 bias.
// Stack: 16 bytes, zeros that stand for a missing bias.
// Nothing to prove. Reads and writes exactly pixels * channels.
#include "asm.h"

#define out        x0
#define in         x1
#define pixels     x2
#define channels   x3
#define scale_base x4
#define bias_base  x5
#define scale      x6
#define bias       x7
#define left       x8
#define step4      x9
#define step1      x10

#define value0     v0
#define value1     v1
#define scale0     v2
#define scale1     v3
#define bias0      v4
#define bias1      v5
#define value0q    q0
#define value1q    q1
#define scale0q    q2
#define scale1q    q3
#define bias0q     q4
#define bias1q     q5
#define value0s    s0
#define scale0s    s2
#define bias0s     s4

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
2:      mov     scale, scale_base
        mov     bias, bias_base
        subs    left, channels, #8
        b.lo    4f
3:      ldr     bias0q, [bias]
        add     bias, bias, step4
        ldr     bias1q, [bias]
        add     bias, bias, step4
        ldp     value0q, value1q, [in], #32
        ldp     scale0q, scale1q, [scale], #32
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
        ldr     scale0s, [scale], #4
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
