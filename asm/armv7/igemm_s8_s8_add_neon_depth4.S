// SPDX-License-Identifier: Apache-2.0
//
// v = fadd(fmul((float) acc''[p][n], multiplier[n]),
//          fmul((float)(residual[p][n] - residual_zero_point), residual_scale))          (6)
// leaky by slope[n] if there is one                                                     (5b)
// out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_s8_add_neon_depth4(const struct n8_igemm_args *args);
//
// Bounds: igemm_4x8_sums.inc for the sums, igemm_4x8_store8.inc for the rest.
// Registers, stack: igemm_4x8_frame.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 8
#define PRODUCTS 4
#define SCALED
#define ADD
#include "igemm_4x8_frame.inc"

func    n8_igemm_s8_s8_add_neon_depth4
#include "igemm_4x8_begin.inc"
#include "igemm_4x8_sums.inc"
#include "igemm_4x8_store8.inc"
#include "igemm_4x8_end.inc"
#include "igemm_4x8_general8.inc"
endfunc n8_igemm_s8_s8_add_neon_depth4
