// SPDX-License-Identifier: Apache-2.0
//
// v = fadd(fmul((float) acc''[p][n], multiplier[n]),
//          fmul((float)(residual[p][n] - residual_zero_point), residual_scale))          (6)
// leaky by slope[n] if there is one                                                     (5b)
// out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_s8_add_neon_4x4(const struct n8_igemm_args *args);
//
// Bounds: |residual - zero point| <= 255 fits int16; igemm_4x4_begin.inc for the sums,
//   igemm_4x4_store8.inc for the rest.
// Registers, stack: igemm_4x4_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define TILE_BYTES 4

#define scales      v0
#define scalesq     q0
#define r_scale     v1
#define r_zp        v2
#define r_bytes     v3
#define r_low       v4
#define r_high      v5
#define r0          v6
#define r1          v7
#define r2          v8
#define r3          v9

func    n8_igemm_s8_s8_add_neon_4x4
#include "igemm_4x4_begin.inc"
        // The residual of pixels that do not exist is read from the last one that does; the
        // bytes after the last channel are slack.
        cmp     pixels, #2
        add     ptr1, residual, residual_stride
        csel    ptr1, ptr1, residual, hs
        add     ptr2, ptr1, residual_stride
        csel    ptr2, ptr2, ptr1, hi
        cmp     pixels, #4
        add     ptr3, ptr2, residual_stride
        csel    ptr3, ptr3, ptr2, hs
        ld1     {r_bytes.s}[0], [residual]
        ld1     {r_bytes.s}[1], [ptr1]
        ld1     {r_bytes.s}[2], [ptr2]
        ld1     {r_bytes.s}[3], [ptr3]
        add     ptr1, args, #N8_OFF_IG_RESIDUAL_ZERO_POINT
        add     ptr2, args, #N8_OFF_IG_RESIDUAL_SCALE
        ld1r    {r_zp.8h}, [ptr1]
        ld1r    {r_scale.4s}, [ptr2]
        ldr     scalesq, [multiplier, offset]
        sxtl    r_low.8h, r_bytes.8b
        sxtl2   r_high.8h, r_bytes.16b
        scvtf   sum0.4s, sum0.4s
        scvtf   sum1.4s, sum1.4s
        sub     r_low.8h, r_low.8h, r_zp.8h
        sub     r_high.8h, r_high.8h, r_zp.8h
        scvtf   sum2.4s, sum2.4s
        scvtf   sum3.4s, sum3.4s
        sxtl    r0.4s, r_low.4h
        sxtl2   r1.4s, r_low.8h
        sxtl    r2.4s, r_high.4h
        sxtl2   r3.4s, r_high.8h
        fmul    sum0.4s, sum0.4s, scales.4s
        fmul    sum1.4s, sum1.4s, scales.4s
        fmul    sum2.4s, sum2.4s, scales.4s
        fmul    sum3.4s, sum3.4s, scales.4s
        scvtf   r0.4s, r0.4s
        scvtf   r1.4s, r1.4s
        scvtf   r2.4s, r2.4s
        scvtf   r3.4s, r3.4s
        fmul    r0.4s, r0.4s, r_scale.4s
        fmul    r1.4s, r1.4s, r_scale.4s
        fmul    r2.4s, r2.4s, r_scale.4s
        fmul    r3.4s, r3.4s, r_scale.4s
        fadd    sum0.4s, sum0.4s, r0.4s
        fadd    sum1.4s, sum1.4s, r1.4s
        fadd    sum2.4s, sum2.4s, r2.4s
        fadd    sum3.4s, sum3.4s, r3.4s
#include "igemm_4x4_store8.inc"
#include "igemm_4x4_end.inc"
endfunc n8_igemm_s8_s8_add_neon_4x4
