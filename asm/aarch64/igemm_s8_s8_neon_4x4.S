// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][n], multiplier[n]), leaky by slope[n] if there is one       (5b)
// out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_s8_neon_4x4(const struct n8_igemm_args *args);
//
// Bounds: igemm_4x4_begin.inc for the sums, igemm_4x4_store8.inc for the rest.
// Registers, stack: igemm_4x4_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 4

#define scales      v0
#define scalesq     q0

func    n8_igemm_s8_s8_neon_4x4
#include "igemm_4x4_begin.inc"
        ldr     scalesq, [multiplier, offset]
        scvtf   sum0.4s, sum0.4s
        scvtf   sum1.4s, sum1.4s
        scvtf   sum2.4s, sum2.4s
        scvtf   sum3.4s, sum3.4s
        fmul    sum0.4s, sum0.4s, scales.4s
        fmul    sum1.4s, sum1.4s, scales.4s
        fmul    sum2.4s, sum2.4s, scales.4s
        fmul    sum3.4s, sum3.4s, scales.4s
#include "igemm_4x4_store8.inc"
#include "igemm_4x4_end.inc"
endfunc n8_igemm_s8_s8_neon_4x4
