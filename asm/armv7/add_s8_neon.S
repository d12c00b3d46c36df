// SPDX-License-Identifier: Apache-2.0
//
// v = fadd(fmul((float)(a[i] - a_zero_point), a_scale), fmul((float)(b[i] - b_zero_point), b_scale))
// out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)                        (6)
//
//   void n8_add_s8_neon(const struct n8_pointwise_args *args);
//
// Bounds: a difference of bytes fits int16, and int32 to float is exact for it; vmla rounds the
//   product and then the sum.
// Registers, stack: pointwise_s8_begin.inc. Reads and writes exactly `count` bytes.
#include "asm.h"
#include "kernel.h"

#define TWO_OPERANDS

func    n8_add_s8_neon
#include "pointwise_s8_begin.inc"
        vsubl.s8 q8, d24, d10
        vsubl.s8 q10, d25, d10
        vsubl.s8 q12, d26, d11
        vsubl.s8 q14, d27, d11
        vmovl.s16 q9, d17
        vmovl.s16 q8, d16
        vmovl.s16 q11, d21
        vmovl.s16 q10, d20
        vmovl.s16 q13, d25
        vmovl.s16 q12, d24
        vmovl.s16 q15, d29
        vmovl.s16 q14, d28
        vcvt.f32.s32 q8, q8
        vcvt.f32.s32 q9, q9
        vcvt.f32.s32 q10, q10
        vcvt.f32.s32 q11, q11
        vcvt.f32.s32 q12, q12
        vcvt.f32.s32 q13, q13
        vcvt.f32.s32 q14, q14
        vcvt.f32.s32 q15, q15
        vmul.f32 q8, q8, d0[0]
        vmul.f32 q9, q9, d0[0]
        vmul.f32 q10, q10, d0[0]
        vmul.f32 q11, q11, d0[0]
        vmla.f32 q8, q12, d0[1]
        vmla.f32 q9, q13, d0[1]
        vmla.f32 q10, q14, d0[1]
        vmla.f32 q11, q15, d0[1]
#include "pointwise_s8_end.inc"
endfunc n8_add_s8_neon
