// SPDX-License-Identifier: Apache-2.0
//
// out[c] = clamp(the largest rows[t][c] over the taps t, lo, hi)                             (9)
//
//   void n8_maxpool_s8_neon(const struct n8_pool_args *args);
//
// Bounds: bytes only. Reads up to 31 bytes beyond the last channel, which are slack; writes
//   exactly `channels`.
// Registers: r0 the arguments, r1 out, r2 rows, r3 taps, r4 channels left, r5 scratch, r6 next row
//   pointer, r7 taps left, r8 first channel of a block; q1 lo, q2 hi, q8-q9 results, q10-q11 a tap.
// Stack: 24 bytes, what it preserves.
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

#include "round16_s8.inc"

func    n8_maxpool_s8_neon
        push    {r4-r8, lr}
        .cfi_def_cfa_offset 24
        .cfi_offset lr, -4
        ldr     out, [args, #N8_OFF_PL_OUT]
        ldr     rows, [args, #N8_OFF_PL_ROWS]
        ldr     taps, [args, #N8_OFF_PL_TAPS]
        ldr     channels, [args, #N8_OFF_PL_CHANNELS]
        load_limits N8_OFF_PL_ZERO_POINT, N8_OFF_PL_LO, N8_OFF_PL_HI
        mov     channel, #0
        cmp     channels, #0
        beq     6f

        // 32 channels of all taps.
1:      mov     next, rows
        mov     left, taps
        vmov    q8, q1
        vmov    q9, q1
2:      ldr     ptr, [next], #4
        add     ptr, ptr, channel
        vld1.8  {d20-d23}, [ptr]
        subs    left, left, #1
        vmax.s8 q8, q8, q10
        vmax.s8 q9, q9, q11
        bne     2b
        vmin.s8 q8, q8, q2
        vmin.s8 q9, q9, q2
        add     channel, channel, #32
        subs    channels, channels, #32
        blo     3f
        vst1.8  {d16-d19}, [out]!
        bhi     1b
        b       6f

        // The last channels.
3:      tst     channels, #16
        beq     4f
        vst1.8  {d16-d17}, [out]!
        vmov    q8, q9
4:      store_last out, channels
6:      pop     {r4-r8, pc}
endfunc n8_maxpool_s8_neon
