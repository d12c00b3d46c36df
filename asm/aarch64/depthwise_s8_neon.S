// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for any number of taps.
//
//   void n8_depthwise_s8_neon(const struct n8_depthwise_args *args);
//
// A group is 4 outputs of 8 channels. Its taps are taken in pairs, whose products share an int16
// lane; where their number is odd, the first stands alone. The products of a pair are added to
// the sums while the inputs of the next one are loaded. The last group of a row ends with the
// row; where a row has fewer than 4 outputs, the last one is computed several times.
//
// Bounds: |input| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products
//   that share an int16 lane reach at most 32640. int32 is proved by (12).
// Registers: below, and those of depthwise_s8_round4.inc.
// Stack: depthwise_s8_save.inc.
#include "asm.h"
#include "kernel.h"

#define args            x0
#define in0             x1
#define step1           x2
#define step2           x3
#define step3           x4
#define tap_stride      x5
#define next_row        x6
#define left            x7
#define weight          x8
#define weights         x9
#define pairs           x10
#define out             x11
#define out_stride      x12
#define bias            x13
#define multiplier      x14
#define slope           x15
#define temp0           x16
#define temp0w          w16
#define temp1           x17
#define temp1w          w17
#define width           x20
#define widthw          w20
#define column          x21
#define first           x22
#define pixels          x23
#define channel         x24

#define a0              v0
#define a1              v1
#define a2              v2
#define a3              v3
#define wa              v4
#define b0              v5
#define b1              v6
#define b2              v7
#define b3              v8
#define wb              v9
#define scalesl         v13
#define scalesh         v14
#define magic           v15
#define offset          v16
#define qlo             v17
#define biasl           v30
#define biash           v31
#define a0d             d0
#define a1d             d1
#define a2d             d2
#define a3d             d3
#define wad             d4
#define b0d             d5
#define b1d             d6
#define b2d             d7
#define b3d             d8
#define wbd             d9

func    n8_depthwise_s8_neon
#include "depthwise_s8_save.inc"

        ldp     tap_stride, step1, [args, #N8_OFF_DW_TAP_STRIDE]
        ldp     weights, pixels, [args, #N8_OFF_DW_WEIGHTS]
        ldp     bias, multiplier, [args, #N8_OFF_DW_BIAS]
        ldr     slope, [args, #N8_OFF_DW_SLOPE]
        ldr     out_stride, [args, #N8_OFF_DW_OUT_STRIDE]
        mov     channel, #0
        // Distances from the first output of a group to the others.
        lsl     step2, step1, #1
        add     step3, step2, step1
        cmp     pixels, #2
        csel    step1, xzr, step1, lo
        csel    step2, step1, step2, ls
        cmp     pixels, #3
        csel    step3, step2, step3, ls

.Lchannels:
#include "depthwise_s8_bias.inc"
        mov     first, #0

.Lgroup:
        ldr     temp0, [args, #N8_OFF_DW_STEP]
        ldr     out, [args, #N8_OFF_DW_OUT]
        madd    column, first, temp0, channel
        madd    out, first, out_stride, out
        add     out, out, channel
        ldr     next_row, [args, #N8_OFF_DW_ROWS]
        mov     weight, weights
        ldr     in0, [next_row], #8
        ldr     widthw, [args, #N8_OFF_DW_KERNEL_WIDTH]
        ldr     temp0w, [args, #N8_OFF_DW_KERNEL_HEIGHT]
        mul     pairs, temp0, width
        add     in0, in0, column
        mov     sum0l.16b, biasl.16b
        mov     sum0h.16b, biash.16b
        mov     sum1l.16b, biasl.16b
        mov     sum1h.16b, biash.16b
        mov     sum2l.16b, biasl.16b
        mov     sum2h.16b, biash.16b
        mov     sum3l.16b, biasl.16b
        mov     sum3h.16b, biash.16b
        mov     left, width
        tbnz    pairs, #0, .Lfirst_alone
        movi    t0.16b, #0
        movi    t1.16b, #0
        movi    t2.16b, #0
        movi    t3.16b, #0
        sub     in0, in0, tap_stride
        add     left, left, #1
        lsr     pairs, pairs, #1
        b       .Lpair
.Lfirst_alone:
        ldr     a0d, [in0]
        ldr     wad, [weight], #8
        ldr     a1d, [in0, step1]
        ldr     a2d, [in0, step2]
        ldr     a3d, [in0, step3]
        smull   t0.8h, a0.8b, wa.8b
        smull   t1.8h, a1.8b, wa.8b
        smull   t2.8h, a2.8b, wa.8b
        smull   t3.8h, a3.8b, wa.8b
        lsr     pairs, pairs, #1
        cbz     pairs, .Lsum

.Lpair:
        add     in0, in0, tap_stride
        subs    left, left, #1
        b.eq    .Lrow_first
.Lfirst:
        ldr     a0d, [in0]
        saddw   sum0l.4s, sum0l.4s, t0.4h
        ldr     wad, [weight], #8
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        ldr     a1d, [in0, step1]
        saddw   sum1l.4s, sum1l.4s, t1.4h
        ldr     a2d, [in0, step2]
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        ldr     a3d, [in0, step3]
        add     in0, in0, tap_stride
        subs    left, left, #1
        b.eq    .Lrow_second
.Lsecond:
        ldr     b0d, [in0]
        saddw   sum2l.4s, sum2l.4s, t2.4h
        ldr     wbd, [weight], #8
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        ldr     b1d, [in0, step1]
        saddw   sum3l.4s, sum3l.4s, t3.4h
        ldr     b2d, [in0, step2]
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        ldr     b3d, [in0, step3]
        smull   t0.8h, a0.8b, wa.8b
        smull   t1.8h, a1.8b, wa.8b
        smull   t2.8h, a2.8b, wa.8b
        smull   t3.8h, a3.8b, wa.8b
        smlal   t0.8h, b0.8b, wb.8b
        smlal   t1.8h, b1.8b, wb.8b
        smlal   t2.8h, b2.8b, wb.8b
        smlal   t3.8h, b3.8b, wb.8b
        subs    pairs, pairs, #1
        b.ne    .Lpair

.Lsum:
        // The last products are added while the constants are loaded.
        // Low bytes of the int32 limits are the int8 limits.
        add     temp1, sp, #112
        saddw   sum0l.4s, sum0l.4s, t0.4h
        ld1r    {magic.4s}, [temp1]
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        ld1     {scalesl.4s, scalesh.4s}, [multiplier]
        add     temp0, sp, #116
        saddw   sum1l.4s, sum1l.4s, t1.4h
        ld1r    {offset.4s}, [temp0]
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        add     temp1, args, #N8_OFF_DW_LO
        saddw   sum2l.4s, sum2l.4s, t2.4h
        ld1r    {qlo.16b}, [temp1]
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        saddw   sum3l.4s, sum3l.4s, t3.4h
        saddw2  sum3h.4s, sum3h.4s, t3.8h
#include "depthwise_s8_round4.inc"
        st1     {t0.d}[0], [out], out_stride
        cmp     pixels, #2
        b.lo    .Lnext
        st1     {t0.d}[1], [out], out_stride
        b.eq    .Lnext
        cmp     pixels, #4
        st1     {t2.d}[0], [out], out_stride
        b.lo    .Lnext
        st1     {t2.d}[1], [out]
        add     first, first, #4
        cmp     first, pixels
        b.hs    .Lnext
        sub     temp0, pixels, #4
        cmp     first, temp0
        csel    first, first, temp0, lo
        b       .Lgroup

.Lnext:
        mov     weights, weight
        add     multiplier, multiplier, #32
        add     temp0, slope, #32
        cmp     slope, #0
        csel    slope, xzr, temp0, eq
        add     channel, channel, #8
        ldr     temp0, [args, #N8_OFF_DW_CHANNELS]
        cmp     channel, temp0
        b.lo    .Lchannels
#include "depthwise_s8_restore.inc"

        // The next tap is the first of its row.
.Lrow_first:
        ldr     in0, [next_row], #8
        mov     left, width
        add     in0, in0, column
        b       .Lfirst
.Lrow_second:
        ldr     in0, [next_row], #8
        mov     left, width
        add     in0, in0, column
        b       .Lsecond
#include "depthwise_s8_round4_else.inc"
endfunc n8_depthwise_s8_neon
