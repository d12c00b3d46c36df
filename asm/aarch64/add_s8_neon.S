// SPDX-License-Identifier: Apache-2.0
//
// v = fadd(fmul((float)(a[i] - a_zero_point), a_scale), fmul((float)(b[i] - b_zero_point), b_scale))
// out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)                        (6)
//
//   void n8_add_s8_neon(const struct n8_pointwise_args *args);
//
// Bounds: a difference of bytes fits int16, and int32 to float is exact for it.
// Registers, stack: pointwise_s8_begin.inc. Reads and writes exactly `count` bytes.
#include "asm.h"
#include "kernel.h"

#define TWO_OPERANDS

func    n8_add_s8_neon
#include "pointwise_s8_begin.inc"
        floats8 8b, , v20, v16, v17, v6
        floats8 16b, 2, v20, v18, v19, v6
        floats8 8b, , v21, v24, v25, v7
        floats8 16b, 2, v21, v26, v27, v7
        fmul    v16.4s, v16.4s, v3.s[0]
        fmul    v17.4s, v17.4s, v3.s[0]
        fmul    v18.4s, v18.4s, v3.s[0]
        fmul    v19.4s, v19.4s, v3.s[0]
        fmul    v24.4s, v24.4s, v4.s[0]
        fmul    v25.4s, v25.4s, v4.s[0]
        fmul    v26.4s, v26.4s, v4.s[0]
        fmul    v27.4s, v27.4s, v4.s[0]
        fadd    v16.4s, v16.4s, v24.4s
        fadd    v17.4s, v17.4s, v25.4s
        fadd    v18.4s, v18.4s, v26.4s
        fadd    v19.4s, v19.4s, v27.4s
#include "pointwise_s8_end.inc"
endfunc n8_add_s8_neon
