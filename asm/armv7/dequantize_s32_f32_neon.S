// SPDX-License-Identifier: Apache-2.0
//
// out[p][c] = fadd(fmul((float) in[p][c], scale[c]), bias[c])                           (4)
//
//   void n8_dequantize_s32_f32_neon(float *out, const int32_t *in, size_t pixels,
//                                   size_t channels, const float *scale, const float *bias);
//
// Bounds: vcvt rounds to nearest even (7); vmla rounds the product and then the sum.
// Registers: r0 out, r1 in, r2 pixels, r3 channels, r4 scale, r5 bias (NULL adds 0), r6 and r7 their
//   cursors, r8 and r9 steps of the bias, r12 channels left; q0-q1 scale, q2-q3 values, q8-q9 bias and
//   results.
// Stack: 56 bytes, what it preserves and zeros that stand for a missing bias.
// Nothing to prove. Reads and writes exactly pixels * channels.
#include "asm.h"

#define out        r0
#define in         r1
#define pixels     r2
#define channels   r3
#define scale_base r4
#define bias_base  r5
#define scale      r6
#define bias       r7
#define step8      r8
#define step1      r9
#define left       r12

func    n8_dequantize_s32_f32_neon
        push    {r4-r9}
        .cfi_def_cfa_offset 24
        ldr     scale_base, [sp, #24]
        ldr     bias_base, [sp, #28]
        // Without a bias the cursor stands still on eight zeros.
        vmov.i32 q2, #0
        vmov.i32 q3, #0
        vpush   {d4-d7}
        .cfi_def_cfa_offset 56
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
1:      mov     scale, scale_base
        mov     bias, bias_base
        subs    left, channels, #8
        blo     3f
2:      vld1.32 {d4-d7}, [in]!
        vld1.32 {d0-d3}, [scale]!
        vld1.32 {d16-d19}, [bias], step8
        subs    left, left, #8
        vcvt.f32.s32 q2, q2
        vcvt.f32.s32 q3, q3
        vmla.f32 q8, q2, q0
        vmla.f32 q9, q3, q1
        vst1.32 {d16-d19}, [out]!
        bhs     2b

        // Its last 0 to 7 channels one by one.
3:      adds    left, left, #8
        beq     5f
4:      vld1.32 {d4[0]}, [in]!
        vld1.32 {d0[0]}, [scale]!
        vld1.32 {d16[0]}, [bias], step1
        subs    left, left, #1
        vcvt.f32.s32 d4, d4
        vmla.f32 d16, d4, d0
        vst1.32 {d16[0]}, [out]!
        bne     4b
5:      subs    pixels, pixels, #1
        bne     1b

6:      add     sp, sp, #32
        .cfi_def_cfa_offset 24
        pop     {r4-r9}
        .cfi_def_cfa_offset 0
        bx      lr
endfunc n8_dequantize_s32_f32_neon
