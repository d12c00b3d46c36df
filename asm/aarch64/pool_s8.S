// SPDX-License-Identifier: Apache-2.0
//
// Pooling of int8, of one pixel:
//
//   maxpool   out[c] = clamp(the largest rows[t][c] over the taps t, lo, hi)                   (9)
//   avgpool   v = fmul((float)(the sum of rows[t][c] - in_zero_point over the taps t), multiplier)
//             out[c] = clamp(rne(v) + zero_point, lo, hi), or v itself                         (9)
//
// and of those that follow it, whose rows begin `step` bytes later each.
//
//   void n8_..._s8_neon(const struct n8_pool_args *args);
//
// Bounds: maxpool has bytes only, and reads up to 31 beyond the last channel, which are slack;
//   avgpool up to 15. There 255 bytes fit int16 before they are added to the int32 sums, and these
//   hold 255 * taps by the caller's word. Exactly `channels` are written.
// Registers: below, of which `args` becomes left; v0-v2 zero point, lo, hi; v3 multiplier, v4 - taps
//   * in_zero_point, v5 and v20 taps, v6-v7 int16 sums, v16-v19 int32 sums. maxpool: v3-v4 and v5-v6
//   a tap, v16-v17 results of every other tap, v18-v19 of the others.
// Stack: none.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, rows, taps, channels, ptr, next, ptr2
        registers x, 8, channel, room, pixels, step, out_stride, start, to, count, half
real    .req w16                // whether v itself
left    .req x0                 // taps of this block; start: of this pixel, in bytes
offset  .req w9

.macro  load_args
        ldp     out, rows, [args, #N8_OFF_PL_OUT]
        ldp     taps, channels, [args, #N8_OFF_PL_TAPS]
        ldp     pixels, step, [args, #N8_OFF_PL_PIXELS]
        ldr     out_stride, [args, #N8_OFF_PL_OUT_STRIDE]
        load_limits v0, v1, v2, ptr, N8_OFF_PL_ZERO_POINT, N8_OFF_PL_LO, N8_OFF_PL_HI
        mov     start, #0
.endm

.macro  begin_pixel
        mov     channel, start
        mov     to, out
        mov     count, channels
.endm

.macro  next_pixel
        add     start, start, step
        add     out, out, out_stride
        subs    pixels, pixels, #1
.endm

func    n8_maxpool_s8_neon
        load_args
        cbz     channels, 6f
0:      begin_pixel

        // 32 channels of all taps. The larger of a pair is taken where the next has been asked for;
        // before the first stands what is odd, or lo.
1:      add     half, channel, #16
        mov     next, rows
        fill    mov, v1.16b, v5.16b, v6.16b, v16.16b, v17.16b, v18.16b, v19.16b
        tbz     taps, #0, 2f
        ldr     ptr, [next], #8
        ldr     q5, [ptr, channel]
        ldr     q6, [ptr, half]
2:      ands    left, taps, #-2
        b.eq    4f
3:      ldp     ptr, ptr2, [next], #16
        smax    v18.16b, v18.16b, v5.16b
        smax    v19.16b, v19.16b, v6.16b
        ldr     q3, [ptr, channel]
        ldr     q4, [ptr, half]
        ldr     q5, [ptr2, channel]
        ldr     q6, [ptr2, half]
        subs    left, left, #2
        smax    v16.16b, v16.16b, v3.16b
        smax    v17.16b, v17.16b, v4.16b
        b.ne    3b
4:      smax    v16.16b, v16.16b, v5.16b
        smax    v17.16b, v17.16b, v6.16b
        smax    v16.16b, v16.16b, v18.16b
        smax    v17.16b, v17.16b, v19.16b
        smin    v16.16b, v16.16b, v2.16b
        smin    v17.16b, v17.16b, v2.16b
        add     channel, channel, #32
        subs    count, count, #32
        b.lo    5f
        stp     q16, q17, [to], #32
        b.hi    1b
        b       8f

        // The last channels.
5:      tbz     count, #4, 5f
        str     q16, [to], #16
        mov     v16.16b, v17.16b
5:      store_last to, count
8:      next_pixel
        b.ne    0b
6:      ret
endfunc n8_maxpool_s8_neon

func    n8_avgpool_s8_neon
        load_args
        ldr     s3, [args, #N8_OFF_PL_MULTIPLIER]
        ldr     offset, [args, #N8_OFF_PL_IN_ZERO_POINT]
        mneg    offset, offset, w3
        dup     v4.4s, offset
        ldr     real, [args, #N8_OFF_PL_REAL]
        cbz     channels, 10f
0:      begin_pixel

        // 16 channels of all taps, by pairs; before the first stands what is odd.
1:      mov     next, rows
        fill    mov, v4.16b, v16.16b, v17.16b, v18.16b, v19.16b
        movi    v5.16b, #0
        tbz     taps, #0, 2f
        ldr     ptr, [next], #8
        ldr     q5, [ptr, channel]
2:      sxtl    v6.8h, v5.8b
        sxtl2   v7.8h, v5.16b
        and     left, taps, #-2
3:      mov     room, #254
        cmp     left, room
        csel    room, left, room, lo
        sub     left, left, room
        cbz     room, 5f
4:      ldp     ptr, ptr2, [next], #16
        subs    room, room, #2
        ldr     q5, [ptr, channel]
        ldr     q20, [ptr2, channel]
        saddw   v6.8h, v6.8h, v5.8b
        saddw2  v7.8h, v7.8h, v5.16b
        saddw   v6.8h, v6.8h, v20.8b
        saddw2  v7.8h, v7.8h, v20.16b
        b.ne    4b
5:      saddw   v16.4s, v16.4s, v6.4h
        saddw2  v17.4s, v17.4s, v6.8h
        saddw   v18.4s, v18.4s, v7.4h
        saddw2  v19.4s, v19.4s, v7.8h
        movi    v6.8h, #0
        movi    v7.8h, #0
        cbnz    left, 3b

        scvtf   v16.4s, v16.4s                  // to even (7)
        in_place scvtf, v17.4s, v18.4s, v19.4s
        each    fmul, v3.s[0], v16.4s, v17.4s, v18.4s, v19.4s
        cbnz    real, 6f
        round16 v16, v17, v18, v19, v0, v1, v2
        add     channel, channel, #16
        subs    count, count, #16
        b.lo    5f
        str     q16, [to], #16
        b.hi    1b
        b       8f
5:      store_last to, count
        b       8f

6:      add     channel, channel, #16
        subs    count, count, #16
        b.lo    7f
        stp     q16, q17, [to], #32
        stp     q18, q19, [to], #32
        b.hi    1b
        b       8f
7:      add     count, count, #16
9:      str     s16, [to], #4
        ext     v16.16b, v16.16b, v17.16b, #4
        ext     v17.16b, v17.16b, v18.16b, #4
        ext     v18.16b, v18.16b, v19.16b, #4
        ext     v19.16b, v19.16b, v19.16b, #4
        subs    count, count, #1
        b.ne    9b
8:      next_pixel
        b.ne    0b
10:     ret
endfunc n8_avgpool_s8_neon
