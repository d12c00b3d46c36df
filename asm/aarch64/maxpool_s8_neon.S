// SPDX-License-Identifier: Apache-2.0
//
// out[c] = clamp(the largest rows[t][c] over the taps t, lo, hi)                             (9)
//
//   void n8_maxpool_s8_neon(const struct n8_pool_args *args);
//
// Bounds: bytes only. Reads up to 31 bytes beyond the last channel, which are slack; writes
//   exactly `channels`.
// Registers: x0 the arguments, x1 out, x2 rows, x3 taps, x4 channels left, x5 scratch, x6 next row
//   pointer, x7 taps left, x8 first channel of a block; v1 lo, v2 hi, v3-v4 a tap, v16-v17 results.
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

#include "round16_s8.inc"

func    n8_maxpool_s8_neon
        ldp     out, rows, [args, #N8_OFF_PL_OUT]
        ldp     taps, channels, [args, #N8_OFF_PL_TAPS]
        load_limits N8_OFF_PL_ZERO_POINT, N8_OFF_PL_LO, N8_OFF_PL_HI
        mov     channel, #0
        cbz     channels, 6f

        // 32 channels of all taps.
1:      mov     next, rows
        mov     left, taps
        mov     v16.16b, v1.16b
        mov     v17.16b, v1.16b
2:      ldr     ptr, [next], #8
        add     ptr, ptr, channel
        ldp     q3, q4, [ptr]
        subs    left, left, #1
        smax    v16.16b, v16.16b, v3.16b
        smax    v17.16b, v17.16b, v4.16b
        b.ne    2b
        smin    v16.16b, v16.16b, v2.16b
        smin    v17.16b, v17.16b, v2.16b
        add     channel, channel, #32
        subs    channels, channels, #32
        b.lo    3f
        stp     q16, q17, [out], #32
        b.hi    1b
        ret

        // The last channels.
3:      tbz     channels, #4, 4f
        str     q16, [out], #16
        mov     v16.16b, v17.16b
4:      store_last out, channels
6:      ret
endfunc n8_maxpool_s8_neon
