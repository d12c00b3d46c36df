// SPDX-License-Identifier: Apache-2.0
//
// out[p][n] = fadd(fmul((float) acc''[p][n], multiplier[n]), bias_f32[n])               (4)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_f32_neon(const struct n8_igemm_args *args);
//
// Bounds: product and sum are rounded one after the other; igemm_4x8_sums.inc.
// Registers, stack: igemm_4x8_frame.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 32
#define PRODUCTS 2
#define SCALED
#define BIASED
#include "igemm_4x8_frame.inc"

func    n8_igemm_s8_f32_neon
#include "igemm_4x8_begin.inc"
#include "igemm_4x8_sums.inc"
#include "igemm_4x8_scale.inc"
        add     ptr0, constants, #BIAS_F32
        vldmia  ptr0, {q2-q3}
        .irp    sum, q8, q10, q12, q14
        vadd.f32 \sum, \sum, q2
        .endr
        .irp    sum, q9, q11, q13, q15
        vadd.f32 \sum, \sum, q3
        .endr
#include "igemm_4x8_store32.inc"
#include "igemm_4x8_end.inc"
#include "igemm_4x8_general32.inc"
endfunc n8_igemm_s8_f32_neon
