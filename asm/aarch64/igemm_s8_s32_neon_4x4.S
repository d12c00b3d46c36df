// SPDX-License-Identifier: Apache-2.0
//
// out[p][n] = bias[n] + sum over t, k of rows[t][p][k] * w[n][t][k], as int32       (3)(12)
//
//   void n8_igemm_s8_s32_neon_4x4(const struct n8_igemm_args *args);
//
// Bounds, registers, stack: igemm_4x4_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 16

func    n8_igemm_s8_s32_neon_4x4
#include "igemm_4x4_begin.inc"
#include "igemm_4x4_store32.inc"
#include "igemm_4x4_end.inc"
endfunc n8_igemm_s8_s32_neon_4x4
