// SPDX-License-Identifier: Apache-2.0
//
// For one pixel, as of a fully connected layer:
//
// v = fmul((float) acc''[n], multiplier[n]), leaky by slope[n] if there is one          (5b)
// out[n] = clamp(rne(v) + zero_point, lo, hi)                                            (5)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_s8_neon_1x16(const struct n8_igemm_args *args);
//
// Bounds: igemm_1x16_begin.inc for the sums, round16_s8.inc for the rest.
// Registers, stack: igemm_1x16_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

.macro  leaky   sum, slopes
        vmul.f32 q12, \sum, \slopes
        vclt.f32 q13, \sum, #0
        vbit    \sum, q12, q13
.endm

func    n8_igemm_s8_s8_neon_1x16
#include "igemm_1x16_begin.inc"
#include "round16_s8.inc"
#include "igemm_1x16_scale.inc"
        ldr     ptr, [args, #N8_OFF_IG_SLOPE]
        cmp     ptr, #0
        beq     4f
        add     ptr, ptr, offset
        vldmia  ptr, {q0-q3}
        leaky   q8, q0
        leaky   q9, q1
        leaky   q10, q2
        leaky   q11, q3
4:      load_limits N8_OFF_IG_ZERO_POINT, N8_OFF_IG_LO, N8_OFF_IG_HI
        round16
        cmp     channels, #16
        blo     5f
        vst1.8  {d16-d17}, [out]!
        b       6f
5:      store_last out, channels
6:
#include "igemm_1x16_end.inc"
endfunc n8_igemm_s8_s8_neon_1x16
