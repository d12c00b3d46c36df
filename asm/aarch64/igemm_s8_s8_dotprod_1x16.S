// SPDX-License-Identifier: Apache-2.0
//
// For one pixel, as of a fully connected layer:
//
// v = fmul((float) acc''[n], multiplier[n]), leaky by slope[n] if there is one          (5b)
// out[n] = clamp(rne(v) + zero_point, lo, hi)                                            (5)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_s8_dotprod_1x16(const struct n8_igemm_args *args);
//
// Bounds: igemm_1x16_sums_dotprod.inc for the sums, igemm_1x16_store8.inc for the rest.
// Registers, stack: igemm_1x16_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 16

func    n8_igemm_s8_s8_dotprod_1x16, DOTPROD
#include "igemm_1x16_begin.inc"
#include "igemm_1x16_sums_dotprod.inc"
#include "igemm_1x16_scale.inc"
#include "igemm_1x16_store8.inc"
#include "igemm_1x16_end.inc"
endfunc n8_igemm_s8_s8_dotprod_1x16
