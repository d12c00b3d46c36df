// SPDX-License-Identifier: Apache-2.0
//
// Pooling of int8, of one pixel:
//
//   maxpool   out[c] = clamp(the largest rows[t][c] over the taps t, lo, hi)                   (9)
//   avgpool   v = fmul((float)(the sum of rows[t][c] - in_zero_point over the taps t), multiplier)
//             out[c] = clamp(rne(v) + zero_point, lo, hi)                                      (9)
//
//   void n8_..._s8_neon(const struct n8_pool_args *args);
//
// Bounds: maxpool has bytes only, and reads up to 31 beyond the last channel, which are slack;
//   avgpool up to 15. There 255 bytes fit int16 before they are added to the int32 sums, and these
//   hold 255 * taps by the caller's word. Exactly `channels` are written.
// Registers: x0 the arguments, x1 out, x2 rows, x3 taps, x4 channels left, x5 scratch, x6 next row
//   pointer, x7 taps left, x8 first channel of a block, x9 taps that int16 still holds; v0-v2 zero
//   point, lo, hi; v3 multiplier, v4 - taps * in_zero_point, v5 a tap, v6-v7 int16 sums, v16-v19
//   int32 sums. maxpool: v3-v4 a tap, v16-v17 results.
// Stack: none.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, rows, taps, channels, ptr, next, left
        registers x, 8, channel, room
offset  .req w10

.macro  load_args
        ldp     out, rows, [args, #N8_OFF_PL_OUT]
        ldp     taps, channels, [args, #N8_OFF_PL_TAPS]
        load_limits v0, v1, v2, ptr, N8_OFF_PL_ZERO_POINT, N8_OFF_PL_LO, N8_OFF_PL_HI
.endm

func    n8_maxpool_s8_neon
        load_args
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

func    n8_avgpool_s8_neon
        load_args
        ldr     s3, [args, #N8_OFF_PL_MULTIPLIER]
        ldr     offset, [args, #N8_OFF_PL_IN_ZERO_POINT]
        mneg    offset, offset, w3
        dup     v4.4s, offset
        mov     channel, #0
        cbz     channels, 6f

        // 16 channels of all taps.
1:      mov     next, rows
        mov     left, taps
        fill    mov, v4.16b, v16.16b, v17.16b, v18.16b, v19.16b
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
        in_place scvtf, v17.4s, v18.4s, v19.4s
        each    fmul, v3.s[0], v16.4s, v17.4s, v18.4s, v19.4s
        round16 v16, v17, v18, v19, v0, v1, v2
        add     channel, channel, #16
        subs    channels, channels, #16
        b.lo    4f
        str     q16, [out], #16
        b.hi    1b
        ret
4:      store_last out, channels
6:      ret
endfunc n8_avgpool_s8_neon
