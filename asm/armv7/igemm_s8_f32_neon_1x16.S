// SPDX-License-Identifier: Apache-2.0
//
// For one pixel, as of a fully connected layer:
//
// out[n] = fadd(fmul((float) acc''[n], multiplier[n]), bias_f32[n])                      (4)
// with acc'' as in igemm_s8_s32.
//
//   void n8_igemm_s8_f32_neon_1x16(const struct n8_igemm_args *args);
//
// Bounds: product and sum are rounded one after the other; igemm_1x16_begin.inc.
// Registers, stack: igemm_1x16_begin.inc. The layout of all arrays: runtime/kernel.h.
// conv.c, conv_prove.c and conv_igemm.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

func    n8_igemm_s8_f32_neon_1x16
#include "igemm_1x16_begin.inc"
#include "igemm_1x16_scale.inc"
        ldr     ptr, [args, #N8_OFF_IG_BIAS_F32]
        add     ptr, ptr, offset
        vldmia  ptr, {q0-q3}
        vadd.f32 q8, q8, q0
        vadd.f32 q9, q9, q1
        vadd.f32 q10, q10, q2
        vadd.f32 q11, q11, q3

        // Exactly the channels there are.
        cmp     channels, #16
        blo     4f
        vst1.32 {d16-d19}, [out]!
        vst1.32 {d20-d23}, [out]!
        b       8f
4:      tst     channels, #8
        beq     5f
        vst1.32 {d16-d19}, [out]!
        vmov    q8, q10
        vmov    q9, q11
5:      tst     channels, #4
        beq     6f
        vst1.32 {d16-d17}, [out]!
        vmov    q8, q9
6:      tst     channels, #2
        beq     7f
        vst1.32 {d16}, [out]!
        vmov    d16, d17
7:      tst     channels, #1
        beq     8f
        vst1.32 {d16[0]}, [out]
8:
#include "igemm_1x16_end.inc"
endfunc n8_igemm_s8_f32_neon_1x16
