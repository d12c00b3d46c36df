// SPDX-License-Identifier: Apache-2.0
//
// From the sums of the 36 planes of Winograd tiles to 4x4 outputs each: acc'' of (13), then
//
// v = fmul((float) acc'', multiplier[n]), where there is a residual v = fadd(v, fmul((float)
//     (residual - residual_zero_point), residual_scale))                                    (6)
// leaky by slope[n] if there is one                                                         (5b)
// out = clamp(rne(v) + zero_point, lo, hi)                                                  (5)
//
//   void n8_winograd_output_s8_neon(const struct n8_winograd_output_args *args);
//
// Four channels at a time, and a tile at a time of these: six rows of planes to four values each,
// then the four columns of six to four outputs. While a row is transformed the next one is loaded,
// by 64 bits, which the Cortex-A55 begins together with an operation.
//
// Bounds: sums wrap; what they add up to, times 1/9 modulo 2^32, is 64 * acc'' and below 2^31, and
//   scvtf divides it by 64 before it rounds, to even (7). fcvtns saturates to 32 bits, everything
//   after it to 16 and then 8; NaN becomes 0.
// Registers: x0-x17, x19-x24; v31 factors, v30 the multipliers; all others as the lines below say.
// Stack: 320 bytes: callee-saved registers, the outputs of a tile with fewer than four channels,
//   and where they lie.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, places, residual, residual_places, sums, plane, tile
        registers x, 8, tiles, channels, bias, multiplier, slope, low, high, far_low
        registers x, 16, far_high, tile_sums
        registers x, 19, ptr0, ptr1, place, residual_place, bytes
byte_place .req x24

#define SAVED   128
#define BYTES   SAVED
#define TABLE   (BYTES + 64)
#define FRAME   (TABLE + 128)

        registers v, 27, qlo, zp
        registers v, 30, multipliers, factors
        // factors: 4, 8, 1/9 modulo 2^32, 576
qhi     .req v25

.macro  load    value, from
    .ifnb \value
        ld1     {v\value\().2s}, [\from], plane
    .endif
.endm

.macro  load_high value, from
    .ifnb \value
        ld1     {v\value\().d}[1], [\from], plane
    .endif
.endm

        // Points 1, -1, infinity, 0, 2, -2 of a row or a column, in j0-j5, to the values at j3, j5,
        // t and j0. The last product of j0 is that of the next call, p0 and p2. Meanwhile the next
        // row is loaded into n0-n5.
.macro  points  j0, j1, j2, j3, j4, j5, t, p0, p2, n0, n1, n2, n3, n4, n5
        add     v\t\().4s, v\j0\().4s, v\j1\().4s
        load    \n0, low
        sub     v\j0\().4s, v\j0\().4s, v\j1\().4s
        load    \n1, low
        sub     v\j1\().4s, v\j4\().4s, v\j5\().4s
        load    \n2, low
        add     v\j4\().4s, v\j4\().4s, v\j5\().4s
        load    \n3, low
    .ifnb \p0
        mla     v\p0\().4s, v\p2\().4s, factors.s[0]
    .endif
        load    \n4, far_low
        add     v\j3\().4s, v\j3\().4s, v\t\().4s
        load    \n5, far_low
        add     v\j5\().4s, v\j1\().4s, v\j1\().4s
        load_high \n0, high
        mla     v\t\().4s, v\j4\().4s, factors.s[0]
        load_high \n1, high
        add     v\j3\().4s, v\j3\().4s, v\j4\().4s
        load_high \n2, high
        add     v\j5\().4s, v\j0\().4s, v\j5\().4s
        load_high \n3, high
        mla     v\j0\().4s, v\j1\().4s, factors.s[1]
        load_high \n4, far_high
        load_high \n5, far_high
.endm

        // Two pixels and their residual, scaled.
.macro  add_residual a, b
        ldp     ptr0, ptr1, [residual_place], #16
        ldr     s9, [residual, ptr0]
        add     ptr1, residual, ptr1
        ld1     {v9.s}[1], [ptr1]
        ssubl   v9.8h, v9.8b, v22.8b
        sxtl    v11.4s, v9.4h
        sxtl2   v13.4s, v9.8h
        scvtf   v11.4s, v11.4s
        scvtf   v13.4s, v13.4s
        fmul    v11.4s, v11.4s, v20.4s
        fmul    v13.4s, v13.4s, v20.4s
        fadd    v\a\().4s, v\a\().4s, v11.4s
        fadd    v\b\().4s, v\b\().4s, v13.4s
.endm

.macro  leaky2  a, b
        fmul    v9.4s, v\a\().4s, v14.4s
        fcmlt   v11.4s, v\a\().4s, #0.0
        fmul    v13.4s, v\b\().4s, v14.4s
        fcmlt   v16.4s, v\b\().4s, #0.0
        bit     v\a\().16b, v9.16b, v11.16b
        bit     v\b\().16b, v13.16b, v16.16b
.endm

        // A line of four pixels by way of .Ladjust.
.macro  adjust  a, b, c, d
        mov     v1.16b, v\a\().16b
        mov     v2.16b, v\b\().16b
        mov     v4.16b, v\c\().16b
        mov     v6.16b, v\d\().16b
        bl      .Ladjust
        mov     v\a\().16b, v1.16b
        mov     v\b\().16b, v2.16b
        mov     v\c\().16b, v4.16b
        mov     v\d\().16b, v6.16b
.endm

        // A pixel of four channels.
.macro  store   value, lane, at
    .ifnb \value
        ldr     ptr0, [byte_place, #\at]
        add     ptr0, bytes, ptr0
        st1     {v\value\().s}[\lane], [ptr0]
    .endif
.endm

        // Two lines of four pixels to bytes, in a0 and b0, and the store of those in p and q, the
        // first of which is at \at.
.macro  round8  a0, a1, a2, a3, b0, b1, b2, b3, p, q, at=0
        in_place fcvtns, v\a0\().4s, v\a2\().4s, v\a1\().4s, v\a3\().4s
        store   \p, 0, \at
        in_place fcvtns, v\b0\().4s, v\b2\().4s, v\b1\().4s, v\b3\().4s
        store   \p, 1, \at + 8
        sqxtn   v\a0\().4h, v\a0\().4s
        sqxtn   v\a2\().4h, v\a2\().4s
        sqxtn   v\b0\().4h, v\b0\().4s
        sqxtn   v\b2\().4h, v\b2\().4s
        store   \p, 2, \at + 16
        sqxtn2  v\a0\().8h, v\a1\().4s
        sqxtn2  v\a2\().8h, v\a3\().4s
        sqxtn2  v\b0\().8h, v\b1\().4s
        sqxtn2  v\b2\().8h, v\b3\().4s
        store   \p, 3, \at + 24
        sqadd   v\a0\().8h, v\a0\().8h, zp.8h
        sqadd   v\b0\().8h, v\b0\().8h, zp.8h
        store   \q, 0, \at + 32
        sqadd   v\a2\().8h, v\a2\().8h, zp.8h
        sqadd   v\b2\().8h, v\b2\().8h, zp.8h
        sqxtn   v\a0\().8b, v\a0\().8h
        sqxtn   v\b0\().8b, v\b0\().8h
        store   \q, 1, \at + 40
        sqxtn2  v\a0\().16b, v\a2\().8h
        sqxtn2  v\b0\().16b, v\b2\().8h
        store   \q, 2, \at + 48
        smax    v\a0\().16b, v\a0\().16b, qlo.16b
        smax    v\b0\().16b, v\b0\().16b, qlo.16b
        store   \q, 3, \at + 56
        smin    v\a0\().16b, v\a0\().16b, qhi.16b
        smin    v\b0\().16b, v\b0\().16b, qhi.16b
.endm

func    n8_winograd_output_s8_neon
        enter   FRAME, D8_TO_D15, x19, x20, x21, x22, x23, x24
        str     x30, [sp, #112]
        .cfi_rel_offset x30, 112
        ldp     out, places, [args, #N8_OFF_WO_OUT]
        ldp     residual, residual_places, [args, #N8_OFF_WO_RESIDUAL]
        ldp     sums, plane, [args, #N8_OFF_WO_SUMS]
        ldr     tile, [args, #N8_OFF_WO_TILE]
        ldp     channels, bias, [args, #N8_OFF_WO_CHANNELS]
        ldp     multiplier, slope, [args, #N8_OFF_WO_MULTIPLIER]
        movi    factors.4s, #4
        mov     w19, #8
        mov     factors.s[1], w19
        mov     w19, #0x8e39
        movk    w19, #0x38e3, lsl #16
        mov     factors.s[2], w19
        mov     w19, #576
        mov     factors.s[3], w19

        // Four channels of all tiles.
.Lchannels:
        ldr     tiles, [args, #N8_OFF_WO_TILES]
        ldr     q30, [multiplier], #16
        mov     tile_sums, sums
        mov     place, places
        mov     residual_place, residual_places
        mov     bytes, out
        mov     byte_place, places
        cmp     channels, #4
        b.hs    .Ltile

        // Fewer: their outputs go to the stack first.
        add     bytes, sp, #BYTES
        add     byte_place, sp, #TABLE
        mov     ptr1, byte_place
        mov     ptr0, #0
1:      str     ptr0, [ptr1], #8
        add     ptr0, ptr0, #4
        cmp     ptr0, #64
        b.ne    1b

.Ltile:
        add     far_low, tile_sums, plane, lsl #4
        mov     low, tile_sums
        add     far_low, far_low, plane, lsl #3
        add     high, tile_sums, #8
        add     far_high, far_low, #8
        fill    load, low, 0, 1, 2, 3
        load    4, far_low
        load    5, far_low
        ldr     q12, [bias]
        .irp    first, 0, 1, 2, 3
        load_high \first, high
        .endr
        load_high 4, far_high
        load_high 5, far_high
        mla     v0.4s, v12.4s, factors.s[3]     // at the point (1, 1) it adds to every output
        add     tile_sums, tile_sums, tile
        points  0, 1, 2, 3, 4, 5, 12, , , 6, 7, 8, 9, 10, 11
        points  6, 7, 8, 9, 10, 11, 16, 0, 2, 1, 4, 13, 14, 15, 2
        points  1, 4, 13, 14, 15, 2, 20, 6, 8, 7, 10, 17, 18, 19, 8
        points  7, 10, 17, 18, 19, 8, 24, 1, 13, 4, 15, 21, 22, 23, 13
        points  4, 15, 21, 22, 23, 13, 28, 7, 17, 10, 19, 25, 26, 27, 17
        points  10, 19, 25, 26, 27, 17, 29, 4, 21

        points  3, 9, 14, 18, 22, 26, 15, 10, 25
        points  5, 11, 2, 8, 13, 17, 23, 3, 14
        points  12, 16, 20, 24, 28, 29, 21, 5, 2
        points  0, 6, 1, 7, 4, 10, 19, 12, 20
        add     ptr0, args, #N8_OFF_WO_ZERO_POINT
        add     ptr1, args, #N8_OFF_WO_LO
        mla     v0.4s, v1.4s, factors.s[0]
        add     low, args, #N8_OFF_WO_HI

        //   v18 v8  v24 v7     the pixels of the tile
        //   v26 v17 v29 v10
        //   v15 v23 v21 v19
        //   v3  v5  v12 v0
        each    mul, factors.s[2], v18.4s, v8.4s, v24.4s, v7.4s, v26.4s, v17.4s, v29.4s, v10.4s, \
                v15.4s, v23.4s, v21.4s, v19.4s, v3.4s, v5.4s, v12.4s, v0.4s
        ld1r    {zp.8h}, [ptr0]
        ld1r    {qlo.16b}, [ptr1]
        ld1r    {qhi.16b}, [low]
        each    scvtf, #6, v18.4s, v8.4s, v24.4s, v7.4s, v26.4s, v17.4s, v29.4s, v10.4s, v15.4s, \
                v23.4s, v21.4s, v19.4s, v3.4s, v5.4s, v12.4s, v0.4s
        each    fmul, multipliers.4s, v18.4s, v8.4s, v24.4s, v7.4s, v26.4s, v17.4s, v29.4s, \
                v10.4s, v15.4s, v23.4s, v21.4s, v19.4s, v3.4s, v5.4s, v12.4s, v0.4s
        orr     ptr0, residual, slope
        cbz     ptr0, 3f
        adjust  18, 8, 24, 7
        adjust  26, 17, 29, 10
        adjust  15, 23, 21, 19
        adjust  3, 5, 12, 0
3:      round8  18, 8, 24, 7, 26, 17, 29, 10
        round8  15, 23, 21, 19, 3, 5, 12, 0, 18, 26
        store   15, 0, 64
        store   15, 1, 72
        store   15, 2, 80
        store   15, 3, 88
        store   3, 0, 96
        store   3, 1, 104
        store   3, 2, 112
        store   3, 3, 120
        cmp     channels, #4
        b.lo    5f
        add     byte_place, byte_place, #128
4:      subs    tiles, tiles, #1
        b.ne    .Ltile

        add     out, out, #4
        cbz     residual, 9f
        add     residual, residual, #4
9:      cbz     slope, 9f
        add     slope, slope, #16
9:
        add     sums, sums, #16
        add     bias, bias, #16
        subs    channels, channels, #4
        b.hi    .Lchannels
        b       .Lend

        // The outputs on the stack to their places.
5:      mov     ptr0, #0
6:      ldr     ptr1, [place], #8
        ldr     w13, [bytes, ptr0]
        add     ptr1, out, ptr1
        tbz     channels, #1, 7f
        strh    w13, [ptr1], #2
        lsr     w13, w13, #16
7:      tbz     channels, #0, 8f
        strb    w13, [ptr1]
8:      add     ptr0, ptr0, #4
        cmp     ptr0, #64
        b.ne    6b
        b       4b

.Lend:
        restore 16, d10, d11, d12, d13, d14, d15, x19, x20, x21, x22, x23, x24
        ldr     x30, [sp, #112]
        ldp     d8, d9, [sp], #FRAME
        .cfi_def_cfa_offset 0
        restored D8_TO_D15, x19, x20, x21, x22, x23, x24, x30
        ret

        // Four pixels: the residual (6) and the slope (5b), where there are.
.Ladjust:
        cbz     residual, 1f
        add     ptr0, args, #N8_OFF_WO_RESIDUAL_SCALE
        add     ptr1, args, #N8_OFF_WO_RESIDUAL_ZERO_POINT
        ld1r    {v20.4s}, [ptr0]
        ld1r    {v22.8b}, [ptr1]
        add_residual 1, 2
        add_residual 4, 6
1:      cbz     slope, 2f
        ldr     q14, [slope]
        leaky2  1, 2
        leaky2  4, 6
2:      ret
endfunc n8_winograd_output_s8_neon
