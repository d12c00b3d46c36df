// SPDX-License-Identifier: Apache-2.0
//
// out[p][n] = bias[n] + sum over t, k of rows[t][p][k] * w[n][t][k], as int32       (3)(12)
//
//   void n8_igemm_s8_s32_i8mm(const struct n8_igemm_args *args);
//
// Bounds: igemm_8x8_sums_i8mm.inc. Registers, stack: igemm_8x8_begin.inc. The layout of all
// arrays: runtime/kernel.h. conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 32

func    n8_igemm_s8_s32_i8mm, I8MM
#include "igemm_8x8_begin.inc"
#include "igemm_8x8_sums_i8mm.inc"
#include "igemm_8x8_store32.inc"
#include "igemm_8x8_end.inc"
endfunc n8_igemm_s8_s32_i8mm
