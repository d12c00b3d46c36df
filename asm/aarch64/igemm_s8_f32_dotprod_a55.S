// SPDX-License-Identifier: Apache-2.0
//
// out[p][n] = fadd(fmul((float) acc''[p][n], multiplier[n]), bias_f32[n])               (4)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_f32_dotprod_a55(const struct n8_igemm_args *args);
//
// Bounds: product and sum are rounded one after the other; igemm_8x8_sums_dotprod_a55.inc.
// Registers, stack: igemm_8x8_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 32

func    n8_igemm_s8_f32_dotprod_a55, DOTPROD
#include "igemm_8x8_begin.inc"
#include "igemm_8x8_sums_dotprod_a55.inc"
#include "igemm_8x8_scale.inc"
#include "igemm_8x8_bias.inc"
#include "igemm_8x8_store32.inc"
#include "igemm_8x8_end.inc"
endfunc n8_igemm_s8_f32_dotprod_a55
