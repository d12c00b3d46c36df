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
        ssubl   v24.8h, v20.8b, v6.8b
        ssubl2  v25.8h, v20.16b, v6.16b
        ssubl   v26.8h, v21.8b, v7.8b
        ssubl2  v27.8h, v21.16b, v7.16b
        smull   v16.4s, v24.4h, v26.4h
        smull2  v17.4s, v24.8h, v26.8h
        smull   v18.4s, v25.4h, v27.4h
        smull2  v19.4s, v25.8h, v27.8h
        scvtf   v16.4s, v16.4s
        scvtf   v17.4s, v17.4s
        scvtf   v18.4s, v18.4s
        scvtf   v19.4s, v19.4s
        fmul    v16.4s, v16.4s, v3.s[0]
        fmul    v17.4s, v17.4s, v3.s[0]
        fmul    v18.4s, v18.4s, v3.s[0]
        fmul    v19.4s, v19.4s, v3.s[0]
#include "pointwise_s8_end.inc"
endfunc n8_multiply_s8_neon
