// SPDX-License-Identifier: Apache-2.0
//
// For one pixel, as of a fully connected layer:
//
// out[n] = fadd(fmul((float) acc''[n], multiplier[n]), bias_f32[n])                      (4)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_f32_dotprod_1x16(const struct n8_igemm_args *args);
//
// Bounds: product and sum are rounded one after the other; igemm_1x16_sums_dotprod.inc.
// Registers, stack: igemm_1x16_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 64

func    n8_igemm_s8_f32_dotprod_1x16, DOTPROD
#include "igemm_1x16_begin.inc"
#include "igemm_1x16_sums_dotprod.inc"
#include "igemm_1x16_scale.inc"
        ldr     ptr0, [args, #N8_OFF_IG_BIAS_F32]
        add     ptr0, ptr0, offset
        ldp     q0, q1, [ptr0]
        ldp     q2, q3, [ptr0, #32]
        fadd    v16.4s, v16.4s, v0.4s
        fadd    v17.4s, v17.4s, v1.4s
        fadd    v18.4s, v18.4s, v2.4s
        fadd    v19.4s, v19.4s, v3.4s
#include "igemm_1x16_store32.inc"
#include "igemm_1x16_end.inc"
endfunc n8_igemm_s8_f32_dotprod_1x16
