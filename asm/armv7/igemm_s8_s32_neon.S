// SPDX-License-Identifier: Apache-2.0
//
// out[p][n] = bias[n] + sum over t, k of rows[t][p][k] * w[n][t][k], as int32       (3)(12)
//
//   void n8_igemm_s8_s32_neon(const struct n8_igemm_args *args);
//
// Bounds: igemm_4x8_sums.inc. Registers, stack: igemm_4x8_frame.inc. The layout of all arrays:
// runtime/kernel.h. conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 32
#define PRODUCTS 2
#include "igemm_4x8_frame.inc"

func    n8_igemm_s8_s32_neon
#include "igemm_4x8_begin.inc"
#include "igemm_4x8_sums.inc"
#include "igemm_4x8_store32.inc"
#include "igemm_4x8_end.inc"
#include "igemm_4x8_general32.inc"
endfunc n8_igemm_s8_s32_neon
