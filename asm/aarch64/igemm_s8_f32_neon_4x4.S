// SPDX-License-Identifier: Apache-2.0
//
// out[p][n] = fadd(fmul((float) acc''[p][n], multiplier[n]), bias_f32[n])               (4)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_f32_neon_4x4(const struct n8_igemm_args *args);
//
// Bounds: scvtf rounds to nearest even (7); product and sum are rounded one after the other.
// Registers, stack: igemm_4x4_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 16

#define scales      v0
#define biases      v1
#define scalesq     q0
#define biasesq     q1

func    n8_igemm_s8_f32_neon_4x4
#include "igemm_4x4_begin.inc"
        ldr     scalesq, [multiplier, offset]
        ldr     biasesq, [bias_f32, offset]
        scvtf   sum0.4s, sum0.4s
        scvtf   sum1.4s, sum1.4s
        scvtf   sum2.4s, sum2.4s
        scvtf   sum3.4s, sum3.4s
        fmul    sum0.4s, sum0.4s, scales.4s
        fmul    sum1.4s, sum1.4s, scales.4s
        fmul    sum2.4s, sum2.4s, scales.4s
        fmul    sum3.4s, sum3.4s, scales.4s
        fadd    sum0.4s, sum0.4s, biases.4s
        fadd    sum1.4s, sum1.4s, biases.4s
        fadd    sum2.4s, sum2.4s, biases.4s
        fadd    sum3.4s, sum3.4s, biases.4s
#include "igemm_4x4_store32.inc"
#include "igemm_4x4_end.inc"
endfunc n8_igemm_s8_f32_neon_4x4
