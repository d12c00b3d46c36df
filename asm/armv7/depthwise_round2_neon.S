// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
//
// Requantizes two outputs of 8 channels of whatever size, q12-q13 and q14-q15, to d24 and d25. What
// depthwise kernels call in the place of depthwise_s8_round.inc for the layers, and they are few,
// whose values are not small (kernel.h): r0 the arguments, r12 the first channel. q8-q15, r12 and the
// flags change.
//
// Bounds: as in round16_s8.inc. NaN becomes 0.
// Stack: 8 bytes, what it preserves.
#include "asm.h"
#include "kernel.h"

#define args     r0
#define slope    r1
#define channel  r12
#define temp     r12

        // Where it is negative, times its slope; 0 for the NaN that is infinite times 0.
.macro  leak    v, slopes
        vmul.f32 q8, \v, \slopes
        vclt.f32 q9, \v, #0
        vbit    \v, q8, q9
        vceq.f32 q9, \v, \v
        vand    \v, \v, q9
.endm

func    n8_depthwise_round2
        push    {r1, r2}
        .cfi_def_cfa_offset 8
        ldr     r2, [args, #N8_OFF_DW_MULTIPLIER]
        ldr     slope, [args, #N8_OFF_DW_SLOPE]
        add     r2, r2, channel, lsl #2
        vld1.32 {d16-d19}, [r2:128]
        vcvt.f32.s32 q12, q12
        vcvt.f32.s32 q13, q13
        vcvt.f32.s32 q14, q14
        vcvt.f32.s32 q15, q15
        vmul.f32 q12, q12, q8
        vmul.f32 q13, q13, q9
        vmul.f32 q14, q14, q8
        vmul.f32 q15, q15, q9
        cmp     slope, #0
        beq     1f
        add     slope, slope, channel, lsl #2
        vld1.32 {d20-d23}, [slope:128]
        leak    q12, q10
        leak    q13, q11
        leak    q14, q10
        leak    q15, q11
1:      vmov.i32 q8, #0x4b000000
        vorr.i32 q8, #0x400000
        vadd.f32 q12, q12, q8
        vadd.f32 q13, q13, q8
        vadd.f32 q14, q14, q8
        vadd.f32 q15, q15, q8
        vqsub.s32 q12, q12, q8
        vqsub.s32 q13, q13, q8
        vqsub.s32 q14, q14, q8
        vqsub.s32 q15, q15, q8

        // The low bytes of int32 fields are the int16 and int8 values.
        add     temp, args, #N8_OFF_DW_ZERO_POINT
        vld1.16 {d16[], d17[]}, [temp]
        vqmovn.s32 d24, q12
        vqmovn.s32 d25, q13
        vqmovn.s32 d26, q14
        vqmovn.s32 d27, q15
        vqadd.s16 q12, q12, q8
        vqadd.s16 q13, q13, q8
        add     temp, args, #N8_OFF_DW_LO
        vld1.8  {d16[], d17[]}, [temp]
        add     temp, args, #N8_OFF_DW_HI
        vld1.8  {d18[], d19[]}, [temp]
        vqmovn.s16 d24, q12
        vqmovn.s16 d25, q13
        vmax.s8 q12, q12, q8
        vmin.s8 q12, q12, q9
        pop     {r1, r2}
        .cfi_def_cfa_offset 0
        bx      lr
endfunc n8_depthwise_round2
