// SPDX-License-Identifier: Apache-2.0
//
// maxpool_s8:  out[c] = clamp(the largest rows[t][c] over the taps t, lo, hi)                (9)
// avgpool_s8:  v = fmul((float)(the sum of rows[t][c] - in_zero_point over the taps t), multiplier)
//              out[c] = clamp(rne(v) + zero_point, lo, hi), or v itself
//
// of one pixel, and of those that follow it, whose rows begin `step` bytes later each.
//
//   void n8_..._s8_neon(const struct n8_pool_args *args);
//
// Bounds: int16 holds the sum of 255 bytes, which then is added to an int32 accumulator; that this
//   holds 255 * taps is proved by the caller. Reads up to 31 bytes beyond the last channel, which
//   are slack; writes exactly `channels`.
// Registers: below; q0-q3 as in round16; results or accumulators from q8 on. avgpool: q12-q13 int16
//   accumulators, q14 a tap, q4 - taps * in_zero_point, d10 multiplier. maxpool: q10-q11 a tap.
// Stack: 60 bytes or 36, what they preserve.
#include "asm.h"

        registers r, 0, args, out, rows, taps, channels, ptr, next, left
        // channels: left; next: row pointer; left: taps
channel .req r8                 // the first of a block, in bytes from that of the first pixel
start   .req r9                 // the same of this pixel
pixels  .req r10
to      .req r11
room    .req lr                 // taps before int16 is full

.macro  load_arguments
        ldr     out, [args, #N8_OFF_PL_OUT]
        ldr     rows, [args, #N8_OFF_PL_ROWS]
        ldr     taps, [args, #N8_OFF_PL_TAPS]
        ldr     pixels, [args, #N8_OFF_PL_PIXELS]
        mov     start, #0
        load_limits N8_OFF_PL, ptr
.endm

.macro  begin_pixel
        ldr     channels, [args, #N8_OFF_PL_CHANNELS]
        mov     channel, start
        mov     to, out
        cmp     channels, #0
        beq     6f
.endm

.macro  next_pixel
        ldr     ptr, [args, #N8_OFF_PL_STEP]
        ldr     next, [args, #N8_OFF_PL_OUT_STRIDE]
        add     start, start, ptr
        add     out, out, next
        subs    pixels, pixels, #1
.endm

func    n8_avgpool_s8_neon
        save    r4, r5, r6, r7, r8, r9, r10, r11, lr
        save_double d8, d9, d10
        load_arguments
        ldr     ptr, [args, #N8_OFF_PL_IN_ZERO_POINT]
        mul     ptr, taps, ptr
        vdup.32 q4, ptr
        vneg.s32 q4, q4
        vldr    d10, [args, #N8_OFF_PL_MULTIPLIER]
0:      begin_pixel

        // 16 channels of all taps.
1:      mov     next, rows
        mov     left, taps
        fill    vmov, q4, q8, q9, q10, q11
2:      mov     room, #255
        fill    vmov.i16, #0, q12, q13
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

        to_float q8, q9, q10, q11
        each    vmul.f32, d10[0], q8, q9, q10, q11
        add     channel, channel, #16
        ldr     ptr, [args, #N8_OFF_PL_REAL]
        cmp     ptr, #0
        bne     8f
        round16
        subs    channels, channels, #16
        blo     4f
        vst1.8  {d16-d17}, [to]!
        bhi     1b
        b       5f
4:      store_last to, channels
        b       5f

8:      subs    channels, channels, #16
        blo     7f
        vst1.32 {d16-d19}, [to]!
        vst1.32 {d20-d23}, [to]!
        bhi     1b
        b       5f
7:      add     channels, channels, #16
9:      vst1.32 {d16[0]}, [to]!
        vext.32 q8, q8, q9, #1
        vext.32 q9, q9, q10, #1
        vext.32 q10, q10, q11, #1
        vext.32 q11, q11, q11, #1
        subs    channels, channels, #1
        bne     9b
5:      next_pixel
        bne     0b
6:      restore_double d8, d9, d10
        pop     {r4-r11, pc}
endfunc n8_avgpool_s8_neon

func    n8_maxpool_s8_neon
        save    r4, r5, r6, r7, r8, r9, r10, r11, lr
        load_arguments
0:      begin_pixel

        // 32 channels of all taps.
1:      mov     next, rows
        mov     left, taps
        fill    vmov, q1, q8, q9
2:      ldr     ptr, [next], #4
        add     ptr, ptr, channel
        vld1.8  {d20-d23}, [ptr]
        subs    left, left, #1
        vmax.s8 q8, q8, q10
        vmax.s8 q9, q9, q11
        bne     2b
        each    vmin.s8, q2, q8, q9
        add     channel, channel, #32
        subs    channels, channels, #32
        blo     3f
        vst1.8  {d16-d19}, [to]!
        bhi     1b
        b       5f

        // The last channels.
3:      tst     channels, #16
        beq     4f
        vst1.8  {d16-d17}, [to]!
        vmov    q8, q9
4:      store_last to, channels
5:      next_pixel
        bne     0b
6:      pop     {r4-r11, pc}
endfunc n8_maxpool_s8_neon
