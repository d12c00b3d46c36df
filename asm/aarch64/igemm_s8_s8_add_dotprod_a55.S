// SPDX-License-Identifier: Apache-2.0
//
// v = fadd(fmul((float) acc''[p][n], multiplier[n]),
//          fmul((float)(residual[p][n] - residual_zero_point), residual_scale))          (6)
// leaky by slope[n] if there is one                                                     (5b)
// out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_s8_add_dotprod_a55(const struct n8_igemm_args *args);
//
// Bounds: igemm_8x8_sums_dotprod_a55.inc for the sums, igemm_8x8_add.inc and igemm_8x8_round8.inc for
//   the rest.
// Registers, stack: igemm_8x8_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 8

func    n8_igemm_s8_s8_add_dotprod_a55, DOTPROD
#include "igemm_8x8_begin.inc"
#include "igemm_8x8_sums_dotprod_a55.inc"
#include "igemm_8x8_scale.inc"
#include "igemm_8x8_add.inc"
#include "igemm_8x8_round8.inc"
#include "igemm_8x8_store8.inc"
#include "igemm_8x8_end.inc"
endfunc n8_igemm_s8_s8_add_dotprod_a55
