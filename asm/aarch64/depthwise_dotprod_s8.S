// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution of int8 by any number of taps, of one row of outputs, as depthwise_s8.S:
//
//   acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
//   out[p][c] = clamp(rne(fmul((float) acc''[p][c], multiplier[c])) + zero_point, lo, hi)      (5)
//
// by one fused multiply-add (5d). What that is not proved of, and what dot products do not pay for,
// is left to the kernel by 16-bit products: less than 4 outputs or 4 rows of taps, or more taps than
// the stack has room for. Three rows would take longer so where they are dilated.
//
//   void n8_depthwise_s8_dotprod(const struct n8_depthwise_args *args);
//
// Four rows of a column are brought together, by channels, and so are the weights, once for a block
// of 8 channels; the rows that are missing in the last four have weights of 0. A dot product is a
// column of an output. 4 outputs are computed at once, the taps in phases: those that are as far
// apart as the outputs see all columns but one of the tap before.
//
//        columns     s0 v0 v1     output 0, then 3     sums v16 v17     channels 0-3, 4-7
//                    s1 v2 v3     1, then 0, ...            v18 v19
//                    s2 v4 v5                               v20 v21
//                    s3 v6 v7                               v22 v23
//        weights     v24 v25 and v30 v31, of this tap and the next one, in turn
//        coming in   v26-v29
//
// Where a row has no multiple of 4 outputs, the last ones are computed with some once more.
//
// Bounds: sdot adds exact products to int32, which is proved by (12). By (5d) results fit 16 bits;
//   sqxtn saturates.
// Stack: 1104 bytes: the weights, the rows, x19-x28.
// The layout of all arrays: runtime/kernel.h, whose demands runtime/conv proves.
#include "asm.h"
#include "kernel.h"

        // Room for columns of four weights, and for rows.
#define COLUMNS 28
#define ROWS    16
#define ROOM    (32 * COLUMNS + 8 * ROWS)

        registers x, 0, args, row0, row1, row2, row3, column, step, weight
        registers x, 8, left, phase, four_rows, rows_left, out, out_stride, start, multiplier
from_next .req x12              // bytes to the weights of the next tap
        registers x, 16, temp, addend
        registers x, 19, channel, first, tap_stride, weights, ratio, four_weights, column0, width
        registers x, 27, height, pixels
        registers w, 8, leftw, phasew
        registers w, 16, tempw
        registers w, 26, widthw, heightw
        // left: taps of the row, less those of the phase; ratio: from tap to tap of a phase

        // Four bytes of each channel from a, b, c, d, of which a and c become something else.
.macro  arrange l, h, a, b, c, d
        zip1    \a\().16b, \a\().16b, \b\().16b
        zip1    \c\().16b, \c\().16b, \d\().16b
        zip2    \h\().8h, \a\().8h, \c\().8h
        zip1    \l\().8h, \a\().8h, \c\().8h
.endm

.macro  load_column a, b, c, d
        ldr     \a, [row0, column]
        ldr     \b, [row1, column]
        ldr     \c, [row2, column]
        ldr     \d, [row3, column]
        add     column, column, step
.endm

        // A tap, of outputs 0-3 that see the columns a-d, d coming in. After the last one of a
        // phase its own weights are the next.
.macro  tap     a, ah, b, bh, c, ch, d, dh, w, wh, next, nexth
        ldr     d26, [row0, column]
        sdot    v16.4s, \a\().16b, v\w\().16b
        ldr     d27, [row1, column]
        sdot    v17.4s, \ah\().16b, v\wh\().16b
        ldr     d28, [row2, column]
        sdot    v18.4s, \b\().16b, v\w\().16b
        ldr     d29, [row3, column]
        sdot    v19.4s, \bh\().16b, v\wh\().16b
        subs    left, left, ratio
        sdot    v20.4s, \c\().16b, v\w\().16b
        csel    temp, from_next, xzr, hi
        sdot    v21.4s, \ch\().16b, v\wh\().16b
        add     weight, weight, temp
        zip1    v26.16b, v26.16b, v27.16b
        add     column, column, step
        zip1    v28.16b, v28.16b, v29.16b
        ldp     q\next, q\nexth, [weight]
        zip1    \d\().8h, v26.8h, v28.8h
        zip2    \dh\().8h, v26.8h, v28.8h
        sdot    v22.4s, \d\().16b, v\w\().16b
        sdot    v23.4s, \dh\().16b, v\wh\().16b
        b.ls    .Lphase_done
.endm

func    n8_depthwise_s8_dotprod, DOTPROD
        ldp     w8, w9, [args, #N8_OFF_DW_KERNEL_HEIGHT]        // and width
        ldr     start, [args, #N8_OFF_DW_START]
        ldr     temp, [args, #N8_OFF_DW_PIXELS]
        add     w10, w8, #3
        lsr     w10, w10, #2
        mul     x10, x10, x9
        cmp     w8, #4
        ccmp    temp, #4, #0, hs
        ccmp    start, #0, #4, hs
        b.eq    .Lany
        cmp     x10, #COLUMNS
        ccmp    w8, #ROWS, #2, ls
        b.hi    .Lany
        enter   80, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28
        sub     sp, sp, #ROOM
        .cfi_def_cfa_offset 80 + ROOM
        mov     heightw, w8
        mov     widthw, w9
        mov     pixels, temp
        ldp     tap_stride, step, [args, #N8_OFF_DW_TAP_STRIDE]
        ldr     out_stride, [args, #N8_OFF_DW_OUT_STRIDE]
        ldr     weights, [args, #N8_OFF_DW_WEIGHTS]
        ldr     multiplier, [args, #N8_OFF_DW_MULTIPLIER]
        ldr     addend, [args, #N8_OFF_DW_ADDEND]
        // The last row stands for those that are missing.
        ldr     four_rows, [args, #N8_OFF_DW_ROWS]
        sub     left, height, #1
        mov     phase, #ROWS - 1
        add     weight, sp, #32 * COLUMNS
1:      cmp     phase, left
        csel    temp, phase, left, lo
        ldr     temp, [four_rows, temp, lsl #3]
        str     temp, [weight, phase, lsl #3]
        subs    phase, phase, #1
        b.hs    1b
        mov     channel, #0
        mov     ratio, #2
        cmp     step, tap_stride, lsl #1
        csel    ratio, ratio, width, eq
        cmp     step, tap_stride
        csinc   ratio, ratio, xzr, ne

.Lchannels:
        mov     weight, sp
        mov     four_weights, weights
        mov     rows_left, height
        lsl     column, width, #3
        madd    weights, height, column, weights
.Lweights:
        mov     row0, four_weights
        cmp     rows_left, #2
        csel    temp, column, xzr, hs
        add     row1, row0, temp
        cmp     rows_left, #3
        csel    temp, column, xzr, hs
        add     row2, row1, temp
        cmp     rows_left, #4
        csel    temp, column, xzr, hs
        add     row3, row2, temp
        add     four_weights, row0, column, lsl #2
        // Bytes of rows that are missing.
        mov     temp, #-1
        lsl     phase, rows_left, #3
        lsl     temp, temp, phase
        cmp     rows_left, #4
        csel    temp, temp, xzr, lo
        dup     v0.4s, tempw
        mov     left, width
1:      ldr     d26, [row0], #8
        ldr     d27, [row1], #8
        ldr     d28, [row2], #8
        ldr     d29, [row3], #8
        arrange v24, v25, v26, v27, v28, v29
        bic     v24.16b, v24.16b, v0.16b
        bic     v25.16b, v25.16b, v0.16b
        stp     q24, q25, [weight], #32
        subs    left, left, #1
        b.ne    1b
        subs    rows_left, rows_left, #4
        b.hi    .Lweights

        mov     first, #0
.Lgroup:
        ldp     q16, q17, [start]
        madd    column0, first, step, channel
        add     four_rows, sp, #32 * COLUMNS
        mov     rows_left, height
        mov     four_weights, sp
        lsl     from_next, ratio, #5
        fill    mov, v16.16b, v18.16b, v20.16b, v22.16b
        fill    mov, v17.16b, v19.16b, v21.16b, v23.16b

.Lfour_rows:
        ldp     row0, row1, [four_rows], #16
        mov     phase, #0
        ldp     row2, row3, [four_rows], #16
.Lphase:
        madd    column, phase, tap_stride, column0
        add     weight, four_weights, phase, lsl #5
        sub     left, width, phase
        load_column d0, d1, d6, d7
        load_column d2, d3, d28, d29
        arrange v0, v1, v0, v1, v6, v7
        load_column d4, d5, d26, d27
        arrange v2, v3, v2, v3, v28, v29
        ldp     q24, q25, [weight]
        arrange v4, v5, v4, v5, v26, v27
.Ltaps:
        tap     v0, v1, v2, v3, v4, v5, v6, v7, 24, 25, 30, 31
        tap     v2, v3, v4, v5, v6, v7, v0, v1, 30, 31, 24, 25
        tap     v4, v5, v6, v7, v0, v1, v2, v3, 24, 25, 30, 31
        tap     v6, v7, v0, v1, v2, v3, v4, v5, 30, 31, 24, 25
        b       .Ltaps
.Lphase_done:
        add     phase, phase, #1
        cmp     phase, ratio
        ccmp    phase, width, #2, lo
        b.lo    .Lphase
        add     four_weights, four_weights, width, lsl #5
        subs    rows_left, rows_left, #4
        b.hi    .Lfour_rows

        // The sums are requantized, and stored.
        ldp     q0, q1, [addend]
        ldp     q24, q25, [multiplier]
        fill    mov, v0.16b, v2.16b, v4.16b, v6.16b
        fill    mov, v1.16b, v3.16b, v5.16b, v7.16b
        // Low bytes of the int32 limits are the int8 limits.
        spread  v30.16b, N8_OFF_DW_LO, temp
        fmla    v0.4s, v16.4s, v24.4s
        ldr     out, [args, #N8_OFF_DW_OUT]
        fmla    v1.4s, v17.4s, v25.4s
        spread  v31.16b, N8_OFF_DW_HI, temp
        fmla    v2.4s, v18.4s, v24.4s
        fmla    v3.4s, v19.4s, v25.4s
        madd    out, first, out_stride, out
        fmla    v4.4s, v20.4s, v24.4s
        add     out, out, channel
        fmla    v5.4s, v21.4s, v25.4s
        fmla    v6.4s, v22.4s, v24.4s
        fmla    v7.4s, v23.4s, v25.4s
        uzp1    v0.8h, v0.8h, v1.8h
        uzp1    v2.8h, v2.8h, v3.8h
        uzp1    v4.8h, v4.8h, v5.8h
        uzp1    v6.8h, v6.8h, v7.8h
        sqxtn   v0.8b, v0.8h
        sqxtn   v4.8b, v4.8h
        sqxtn2  v0.16b, v2.8h
        sqxtn2  v4.16b, v6.8h
        each    smax, v30.16b, v0.16b, v4.16b
        each    smin, v31.16b, v0.16b, v4.16b
        st1     {v0.8b}, [out], out_stride
        st1     {v0.d}[1], [out], out_stride
        st1     {v4.8b}, [out], out_stride
        st1     {v4.d}[1], [out]
        add     first, first, #4
        sub     temp, pixels, #4
        cmp     first, pixels
        b.hs    .Lnext
        cmp     first, temp
        csel    first, first, temp, lo
        b       .Lgroup

.Lnext:
        add     start, start, #32
        add     multiplier, multiplier, #32
        add     addend, addend, #32
        add     channel, channel, #8
        ldr     temp, [args, #N8_OFF_DW_CHANNELS]
        cmp     channel, temp
        b.lo    .Lchannels
        add     sp, sp, #ROOM
        .cfi_def_cfa_offset 80
        leave   80, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28
        ret
.Lany:
        go_on   n8_depthwise_s8_neon
endfunc n8_depthwise_s8_dotprod
