// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float)(the sum of rows[t][c] - in_zero_point over the taps t), multiplier)       (9)
// out[c] = clamp(rne(v) + zero_point, lo, hi)
//
//   void n8_avgpool_s8_neon(const struct n8_pool_args *args);
//
// Bounds: 255 bytes fit int16 before they are added to the int32 sums, and these hold 255 * taps
//   by the caller's word. Reads up to 15 bytes beyond the last channel, which are slack; writes
//   exactly `channels`.
// Registers: r0 the arguments, r1 out, r2 rows, r3 taps, r4 channels left, r5 scratch, r6 next row
//   pointer, r7 taps left, r8 first channel of a block, lr taps that int16 still holds; q0-q3
//   round16_s8.inc, q8-q11 int32 sums, q12-q13 int16 sums, q14 a tap, q4 - taps * in_zero_point, d10
//   multiplier.
// Stack: 48 bytes, what it preserves.
#include "asm.h"
#include "kernel.h"

#define args     r0
#define out      r1
#define rows     r2
#define taps     r3
#define channels r4
#define ptr      r5
#define next     r6
#define left     r7
#define channel  r8
#define room     lr

#include "round16_s8.inc"

func    n8_avgpool_s8_neon
        push    {r4-r8, lr}
        .cfi_def_cfa_offset 24
        .cfi_offset lr, -4
        vpush   {d8-d10}
        .cfi_def_cfa_offset 48
        ldr     out, [args, #N8_OFF_PL_OUT]
        ldr     rows, [args, #N8_OFF_PL_ROWS]
        ldr     taps, [args, #N8_OFF_PL_TAPS]
        ldr     channels, [args, #N8_OFF_PL_CHANNELS]
        load_limits N8_OFF_PL_ZERO_POINT, N8_OFF_PL_LO, N8_OFF_PL_HI
        ldr     ptr, [args, #N8_OFF_PL_IN_ZERO_POINT]
        mul     ptr, taps, ptr
        vdup.32 q4, ptr
        vneg.s32 q4, q4
        vldr    d10, [args, #N8_OFF_PL_MULTIPLIER]
        mov     channel, #0
        cmp     channels, #0
        beq     6f

        // 16 channels of all taps.
1:      mov     next, rows
        mov     left, taps
        vmov    q8, q4
        vmov    q9, q4
        vmov    q10, q4
        vmov    q11, q4
2:      mov     room, #255
        vmov.i16 q12, #0
        vmov.i16 q13, #0
        cmp     left, room
        movlo   room, left
        sub     left, left, room
3:      ldr     ptr, [next], #4
        subs    room, room, #1
        add     ptr, ptr, channel
        vld1.8  {d28-d29}, [ptr]
        vaddw.s8 q12, q12, d28
        vaddw.s8 q13, q13, d29
        bne     3b
        vaddw.s16 q8, q8, d24
        vaddw.s16 q9, q9, d25
        vaddw.s16 q10, q10, d26
        vaddw.s16 q11, q11, d27
        cmp     left, #0
        bne     2b

        vcvt.f32.s32 q8, q8                     // to even (7)
        vcvt.f32.s32 q9, q9
        vcvt.f32.s32 q10, q10
        vcvt.f32.s32 q11, q11
        vmul.f32 q8, q8, d10[0]
        vmul.f32 q9, q9, d10[0]
        vmul.f32 q10, q10, d10[0]
        vmul.f32 q11, q11, d10[0]
        round16
        add     channel, channel, #16
        subs    channels, channels, #16
        blo     4f
        vst1.8  {d16-d17}, [out]!
        bhi     1b
        b       6f
4:      store_last out, channels
6:      vpop    {d8-d10}
        .cfi_def_cfa_offset 24
        pop     {r4-r8, pc}
endfunc n8_avgpool_s8_neon
