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
// Registers: x0 the arguments, x1 out, x2 rows, x3 taps, x4 channels left, x5 scratch, x6 next row
//   pointer, x7 taps left, x8 first channel of a block, x9 taps that int16 still holds; v0-v2 zero
//   point, lo, hi; v3 multiplier, v4 - taps * in_zero_point, v5 a tap, v6-v7 int16 sums, v16-v19
//   int32 sums.
// Stack: none.
#include "asm.h"
#include "kernel.h"

#define args     x0
#define out      x1
#define rows     x2
#define taps     x3
#define channels x4
#define ptr      x5
#define next     x6
#define left     x7
#define channel  x8
#define room     x9
#define offset   w10

#include "round16_s8.inc"

func    n8_avgpool_s8_neon
        ldp     out, rows, [args, #N8_OFF_PL_OUT]
        ldp     taps, channels, [args, #N8_OFF_PL_TAPS]
        load_limits N8_OFF_PL_ZERO_POINT, N8_OFF_PL_LO, N8_OFF_PL_HI
        ldr     s3, [args, #N8_OFF_PL_MULTIPLIER]
        ldr     offset, [args, #N8_OFF_PL_IN_ZERO_POINT]
        mneg    offset, offset, w3
        dup     v4.4s, offset
        mov     channel, #0
        cbz     channels, 6f

        // 16 channels of all taps.
1:      mov     next, rows
        mov     left, taps
        mov     v16.16b, v4.16b
        mov     v17.16b, v4.16b
        mov     v18.16b, v4.16b
        mov     v19.16b, v4.16b
2:      mov     room, #255
        movi    v6.8h, #0
        movi    v7.8h, #0
        cmp     left, room
        csel    room, left, room, lo
        sub     left, left, room
3:      ldr     ptr, [next], #8
        ldr     q5, [ptr, channel]
        subs    room, room, #1
        saddw   v6.8h, v6.8h, v5.8b
        saddw2  v7.8h, v7.8h, v5.16b
        b.ne    3b
        saddw   v16.4s, v16.4s, v6.4h
        saddw2  v17.4s, v17.4s, v6.8h
        saddw   v18.4s, v18.4s, v7.4h
        saddw2  v19.4s, v19.4s, v7.8h
        cbnz    left, 2b

        scvtf   v16.4s, v16.4s                  // to even (7)
        scvtf   v17.4s, v17.4s
        scvtf   v18.4s, v18.4s
        scvtf   v19.4s, v19.4s
        fmul    v16.4s, v16.4s, v3.s[0]
        fmul    v17.4s, v17.4s, v3.s[0]
        fmul    v18.4s, v18.4s, v3.s[0]
        fmul    v19.4s, v19.4s, v3.s[0]
        round16
        add     channel, channel, #16
        subs    channels, channels, #16
        b.lo    4f
        str     q16, [out], #16
        b.hi    1b
        ret
4:      store_last out, channels
6:      ret
endfunc n8_avgpool_s8_neon
