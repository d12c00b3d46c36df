// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float)((a[i] - a_zero_point) * (b[i] - b_zero_point)), a_scale)                  (16)
// out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)
//
//   void n8_multiply_s8_neon(const struct n8_pointwise_args *args);
//
// Bounds: differences of bytes fit int16, their product is below 2^17 and so exact as a float.
// Registers, stack: pointwise_s8_begin.inc. Reads and writes exactly `count` bytes.
#include "asm.h"
#include "kernel.h"

#define TWO_OPERANDS

func    n8_multiply_s8_neon
#include "pointwise_s8_begin.inc"
        vsubl.s8 q14, d24, d10
        vsubl.s8 q15, d25, d10
        vsubl.s8 q12, d26, d11
        vsubl.s8 q13, d27, d11
        vmull.s16 q8, d28, d24
        vmull.s16 q9, d29, d25
        vmull.s16 q10, d30, d26
        vmull.s16 q11, d31, d27
        vcvt.f32.s32 q8, q8
        vcvt.f32.s32 q9, q9
        vcvt.f32.s32 q10, q10
        vcvt.f32.s32 q11, q11
        vmul.f32 q8, q8, d0[0]
        vmul.f32 q9, q9, d0[0]
        vmul.f32 q10, q10, d0[0]
        vmul.f32 q11, q11, d0[0]
#include "pointwise_s8_end.inc"
endfunc n8_multiply_s8_neon
