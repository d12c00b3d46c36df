// SPDX-License-Identifier: Apache-2.0
//
// v = fadd(fmul((float) acc''[p][n], multiplier[n]),
//          fmul((float)(residual[p][n] - residual_zero_point), residual_scale))           (6)
// leaky by slope[n] if there is one (5b), without the second line where there is no residual,
// out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// with acc'' by (23).
//
//   void n8_igemm_s8_s8_add_i8mm_winograd(const struct n8_igemm_args *args);
//
// Bounds: igemm_8x8_sums_winograd_i8mm.inc for the sums, igemm_8x8_round8.inc for the rest.
// Registers, stack: igemm_8x8_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv_prove.c and conv_winograd8.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 8
#define WINOGRAD

func    n8_igemm_s8_s8_add_i8mm_winograd, I8MM
#include "igemm_8x8_begin.inc"
#include "igemm_8x8_sums_winograd_i8mm.inc"
#include "igemm_8x8_scale.inc"
        ldr     ptr0, [args, #N8_OFF_IG_RESIDUAL]
        cbz     ptr0, .Ladded
#include "igemm_8x8_add.inc"
.Ladded:
#include "igemm_8x8_round8.inc"
#include "igemm_8x8_store8.inc"
#include "igemm_8x8_end.inc"
endfunc n8_igemm_s8_s8_add_i8mm_winograd
