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
// then the four columns of six to four outputs. While a row is transformed the next one is loaded
// as the Cortex-A53 does it best: the high half of 128 bits to a general register, beside an operation,
// and inserted beside the low half of the vector after the next. Two lines of outputs are stored while
// the other two are computed.
//
// Bounds: sums wrap; what they add up to, times 1/9 modulo 2^32, is 64 * acc'' and below 2^31, and
//   scvtf divides it by 64, or what lacks factors by 16 or 4, before it rounds, to even (7). If results are small and the zero point is even,
//   both are added as part of `magic` ("Compilers" of docs/numerics.md), and the low 16 bits are the
//   result. Else fcvtns saturates to 32 bits, everything after it to 16 and then 8; NaN becomes 0.
// Registers: x0-x17, x19-x24; v31 factors, v30 the multipliers; all others as the lines below say.
// Stack: 320 bytes: callee-saved registers, the outputs of a tile with fewer than four channels,
//   and where they lie.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, magic, residual, adjusts, sums, plane, limits
        registers x, 8, tiles, channels, bias, multiplier, slope, low, high0, far_low
        registers x, 16, high1, tile_sums
        registers x, 19, ptr0, ptr1, place, residual_place, bytes
        // magic: bits of 1.5 * 2^23 and the zero point, or 0; adjusts: whether .Ladjust does; limits:
        // whether there are any
byte_place .req x24
high2      .req ptr0

#define SAVED   128
#define BYTES   SAVED
#define TABLE   (BYTES + 64)
#define FRAME   (TABLE + 128)

        registers v, 27, qlo, magics
        registers v, 30, multipliers, factors
        // factors: 4, 36, 1/9 modulo 2^32
qhi     .req v25

        // Half of a vector at `from`, whose other half is on its way in `high`; and the insertion of that of an
        // earlier one.
.macro  load_high value, from, high
    .ifnb \value
        ldr     \high, [\from, #8]
    .endif
.endm

.macro  load    value, from, before, high
    .ifnb \value
        ld1     {v\value\().1d}, [\from], plane
    .endif
    .ifnb \before
        ins     v\before\().d[1], \high
    .endif
.endm

        // Points 1, -1, infinity, 0, 2, -2 of a row or a column, in j0-j5, to the values at j3, j5,
        // t and j0, the last two without a factor of 4. The last operation of j0 is that of the next
        // call, p0 and p2. Meanwhile the next row is loaded into n0-n5; of l2 and l3, the last of this
        // one, the high halves are missing.
.macro  points  j0, j1, j2, j3, j4, j5, t, p0, p2, l2, l3, n0, n1, n2, n3, n4, n5
        add     v\t\().4s, v\j0\().4s, v\j1\().4s
        load_high \n0, low, high0
        sub     v\j0\().4s, v\j0\().4s, v\j1\().4s
        load    \n0, low, \l2, high1
        add     v\j1\().4s, v\j4\().4s, v\j5\().4s
        load_high \n1, low, high1
        sub     v\j5\().4s, v\j4\().4s, v\j5\().4s
        load    \n1, low, \l3, high2
    .ifnb \p0
        sub     v\p0\().4s, v\p2\().4s, v\p0\().4s
    .endif
        load_high \n4, far_low, high2
        add     v\j5\().4s, v\j5\().4s, v\j5\().4s
        load    \n4, far_low, \n0, high0
        mls     v\j3\().4s, v\t\().4s, factors.s[0]
        load_high \n5, far_low, high0
        sub     v\t\().4s, v\j1\().4s, v\t\().4s
        load    \n5, far_low, \n1, high1
        add     v\j2\().4s, v\j2\().4s, v\j5\().4s
        load_high \n2, low, high1
        mls     v\j5\().4s, v\j0\().4s, factors.s[0]
        load    \n2, low, \n4, high2
        add     v\j3\().4s, v\j3\().4s, v\j1\().4s
        load_high \n3, low, high2
        load    \n3, low, \n5, high0
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

        // One of the twelve instructions that store a line of four pixels from \at on.
.macro  store_pixel value, at, number, lane, ptr
    .if \number == \lane
        ldr     \ptr, [byte_place, #\at + 8 * \lane]
    .elseif \number == 4 + \lane
        add     \ptr, bytes, \ptr
    .elseif \number == 8 + \lane
        st1     {v\value\().s}[\lane], [\ptr]
    .endif
.endm

.macro  store_line value, at, number
        store_pixel \value, \at, \number, 0, ptr0
        store_pixel \value, \at, \number, 1, ptr1
        store_pixel \value, \at, \number, 2, low
        store_pixel \value, \at, \number, 3, far_low
.endm

        // The next one of two lines.
.macro  store   p, q, at
    .ifnb \p
        store_line \p, \at, n8_at
        store_line \q, \at + 32, n8_at - 12
        .set    n8_at, n8_at + 1
    .endif
.endm

        // An operation of 8 pixels, and the stores of those in p and q.
.macro  both    op, operand, p, q, at, pixel, more:vararg
        \op     v\pixel\().4s, v\pixel\().4s, \operand
        store   \p, \q, \at
    .ifnb \more
        both    \op, \operand, \p, \q, \at, \more
    .endif
.endm

        // Two lines of four pixels from 576 * acc'' to bytes, in a0 and b0, and the store of those in p and
        // q, the first of which is at \at. bits: of 64 * acc'', which pixels 2 and 3 lack two more of.
.macro  round8  bits, p, q, at, a0, a1, a2, a3, b0, b1, b2, b3
        .set    n8_at, 0
        both    mul, factors.s[2], \p, \q, \at, \a0, \a1, \a2, \a3, \b0, \b1, \b2, \b3
        both    scvtf, "#\bits", \p, \q, \at, \a0, \a1, \b0, \b1
        both    scvtf, "#\bits - 2", \p, \q, \at, \a2, \a3, \b2, \b3
        both    fmul, multipliers.4s, \p, \q, \at, \a0, \a1, \a2, \a3, \b0, \b1, \b2, \b3
        cbz     adjusts, 5f
        adjust  \a0, \a1, \a2, \a3
        adjust  \b0, \b1, \b2, \b3
5:      cbnz    magic, 6f
        add     ptr0, args, #N8_OFF_WO_ZERO_POINT
        ld1r    {magics.8h}, [ptr0]
        in_place fcvtns, v\a0\().4s, v\b0\().4s, v\a2\().4s, v\b2\().4s
        in_place fcvtns, v\a1\().4s, v\b1\().4s, v\a3\().4s, v\b3\().4s
        sqxtn   v\a0\().4h, v\a0\().4s
        sqxtn   v\b0\().4h, v\b0\().4s
        sqxtn   v\a2\().4h, v\a2\().4s
        sqxtn   v\b2\().4h, v\b2\().4s
        sqxtn2  v\a0\().8h, v\a1\().4s
        sqxtn2  v\b0\().8h, v\b1\().4s
        sqxtn2  v\a2\().8h, v\a3\().4s
        sqxtn2  v\b2\().8h, v\b3\().4s
        each    sqadd, magics.8h, v\a0\().8h, v\b0\().8h, v\a2\().8h, v\b2\().8h
        b       7f
6:      both    fadd, magics.4s, , , , \a0, \a1, \a2, \a3, \b0, \b1, \b2, \b3
        uzp1    v\a0\().8h, v\a0\().8h, v\a1\().8h
        uzp1    v\b0\().8h, v\b0\().8h, v\b1\().8h
        uzp1    v\a2\().8h, v\a2\().8h, v\a3\().8h
        uzp1    v\b2\().8h, v\b2\().8h, v\b3\().8h
7:      sqxtn   v\a0\().8b, v\a0\().8h
        sqxtn   v\b0\().8b, v\b0\().8h
        sqxtn2  v\a0\().16b, v\a2\().8h
        sqxtn2  v\b0\().16b, v\b2\().8h
        cbz     limits, 8f
        add     low, args, #N8_OFF_WO_LO
        add     far_low, args, #N8_OFF_WO_HI
        ld1r    {qlo.16b}, [low]
        ld1r    {qhi.16b}, [far_low]
        smax    v\a0\().16b, v\a0\().16b, qlo.16b
        smax    v\b0\().16b, v\b0\().16b, qlo.16b
        smin    v\a0\().16b, v\a0\().16b, qhi.16b
        smin    v\b0\().16b, v\b0\().16b, qhi.16b
8:
.endm

func    n8_winograd_output_s8_neon
        enter   FRAME, D8_TO_D15, x19, x20, x21, x22, x23, x24
        str     x30, [sp, #112]
        .cfi_rel_offset x30, 112
        ldr     out, [args, #N8_OFF_WO_OUT]
        ldr     residual, [args, #N8_OFF_WO_RESIDUAL]
        ldp     sums, plane, [args, #N8_OFF_WO_SUMS]
        ldp     channels, bias, [args, #N8_OFF_WO_CHANNELS]
        ldp     multiplier, slope, [args, #N8_OFF_WO_MULTIPLIER]
        movi    factors.4s, #4
        mov     w19, #36
        mov     factors.s[1], w19
        mov     w19, #0x8e39
        movk    w19, #0x38e3, lsl #16
        mov     factors.s[2], w19
        ldp     w13, w14, [args, #N8_OFF_WO_ZERO_POINT]
        ldp     w15, w16, [args, #N8_OFF_WO_HI]
        mov     w2, #0x4b400000
        bic     w16, w16, w13
        add     w2, w2, w13
        tst     w16, #1
        csel    magic, magic, xzr, ne
        orr     adjusts, residual, slope
        add     w14, w14, #128
        eor     w15, w15, #127
        orr     w7, w14, w15

        // Four channels of all tiles.
.Lchannels:
        ldr     tiles, [args, #N8_OFF_WO_TILES]
        ldr     q30, [multiplier], #16
        mov     tile_sums, sums
        ldr     place, [args, #N8_OFF_WO_PLACES]
        ldr     residual_place, [args, #N8_OFF_WO_RESIDUAL_PLACES]
        mov     bytes, out
        mov     byte_place, place
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
        ldr     q12, [bias]
        mov     low, tile_sums
        add     far_low, tile_sums, plane, lsl #4
        add     far_low, far_low, plane, lsl #3
        load_high 0, low, high0
        load    0, low
        load_high 1, low, high1
        load    1, low
        load_high 4, far_low, high2
        load    4, far_low, 0, high0
        load_high 5, far_low, high0
        load    5, far_low, 1, high1
        load_high 2, low, high1
        load    2, low, 4, high2
        ldr     ptr1, [args, #N8_OFF_WO_TILE]
        mla     v0.4s, v12.4s, factors.s[1]     // at the point (1, 1) it adds to every output
        load_high 3, low, high2
        load    3, low, 5, high0
        add     tile_sums, tile_sums, ptr1
        points  0, 1, 2, 3, 4, 5, 12, , , 2, 3, 6, 7, 8, 9, 10, 11
        points  6, 7, 8, 9, 10, 11, 16, 0, 2, 8, 9, 1, 4, 13, 14, 15, 2
        points  1, 4, 13, 14, 15, 2, 20, 6, 8, 13, 14, 7, 10, 17, 18, 19, 8
        points  7, 10, 17, 18, 19, 8, 24, 1, 13, 17, 18, 4, 15, 21, 22, 23, 13
        points  4, 15, 21, 22, 23, 13, 28, 7, 17, 21, 22, 10, 19, 25, 26, 27, 17
        points  10, 19, 25, 26, 27, 17, 29, 4, 21, 25, 26

        points  3, 9, 14, 18, 22, 26, 15, 10, 25
        points  5, 11, 2, 8, 13, 17, 23, 3, 14
        points  12, 16, 20, 24, 28, 29, 21, 5, 2
        points  0, 6, 1, 7, 4, 10, 19, 12, 20
        sub     v0.4s, v1.4s, v0.4s

        //   v18 v8  v24 v7     the pixels of the tile
        //   v26 v17 v29 v10
        //   v15 v23 v21 v19
        //   v3  v5  v12 v0
        dup     magics.4s, w2
        round8  6, , , , 18, 8, 24, 7, 26, 17, 29, 10
        round8  4, 18, 26, 0, 15, 23, 21, 19, 3, 5, 12, 0
        .set    n8_at, 0
    .rept   24
        store   15, 3, 64
    .endr
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
2:        ret
endfunc n8_winograd_output_s8_neon
