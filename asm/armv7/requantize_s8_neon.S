// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float)(a[i] - a_zero_point), a_scale)
// out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)
//
//   void n8_requantize_s8_neon(const struct n8_pointwise_args *args);
//
// Bounds: a difference of bytes fits int16, and int32 to float is exact for it.
// Registers, stack: pointwise_s8_begin.inc. Reads and writes exactly `count` bytes.
#include "asm.h"
#include "kernel.h"

func    n8_requantize_s8_neon
#include "pointwise_s8_begin.inc"
        vsubl.s8 q8, d24, d10
        vsubl.s8 q10, d25, d10
        vmovl.s16 q9, d17
        vmovl.s16 q8, d16
        vmovl.s16 q11, d21
        vmovl.s16 q10, d20
        vcvt.f32.s32 q8, q8
        vcvt.f32.s32 q9, q9
        vcvt.f32.s32 q10, q10
        vcvt.f32.s32 q11, q11
        vmul.f32 q8, q8, d0[0]
        vmul.f32 q9, q9, d0[0]
        vmul.f32 q10, q10, d0[0]
        vmul.f32 q11, q11, d0[0]
#include "pointwise_s8_end.inc"
endfunc n8_requantize_s8_neon
