// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution of int8 by 5x5 taps, of one row of outputs, as depthwise_s8.S:
//
//   acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
//   out[p][c] = clamp(rne(fmul((float) acc''[p][c], multiplier[c])) + zero_point, lo, hi)      (5)
//
// by one fused multiply-add (5d). Layers where that is not proved are left to the kernel of any size.
//
//   void n8_depthwise_s8_dotprod_5x5s..(const struct n8_depthwise_args *args);
//
// A block of 8 channels at a time, and a column of 5 inputs at a time of these: channels 0-3 of a
// vector lie in l, 4-7 in h. A dot product takes the upper four of a column, or the last row of
// four columns, this one and those before:
//
//   upper      v14, v31   times v0 v1, v2 v3, v4 v5, v6 v7, v8 v9 of columns 0-4 of the taps
//   last row   v26, v28   times v10 v11, columns 0-3 of an output; times v12 v13, column 4 alone
//
// The sums of the outputs that see a column lie in a ring: v16-v20 and v21-v25, or the first three
// of each with stride 2. An output is complete with the column of its last taps.
//
// Bounds: sdot adds exact products to int32, which is proved by (12). By (5d) results fit 16 bits;
//   sqxtn saturates.
// Registers: x0-x17; v27 a pixel of the last row, v29 and v30 indices, v15 temporary.
// Stack: 80 bytes, d8-d15, then lo and hi.
// The layout of all arrays: runtime/kernel.h, whose demands runtime/conv proves.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, row0, row1, row2, row3, row4, column, tap_stride
        // column: in bytes
        registers x, 10, out, out_stride, weights, start, multiplier, addend
        registers x, 16, temp, channel
        registers w, 16, tempw, channelw
left    .req x8                 // columns

        // Four vectors of 8 bytes to four bytes of each channel.
.macro  arrange to_l, to_h, a, b, c, d
        ldr     d14, [weights, #\a]
        ldr     d15, [weights, #\b]
        ldr     d31, [weights, #\c]
        ldr     d27, [weights, #\d]
        zip1    v14.16b, v14.16b, v15.16b
        zip1    v31.16b, v31.16b, v27.16b
        couple  zip, v\to_l\().8h, v\to_h\().8h, v14.8h, v31.8h
.endm

        // Indices that move a byte of v27 in after three of four.
.macro  indices to, first
        mov     tempw, #(\first) & 0xffff
        movk    tempw, #(\first) >> 16, lsl #16
        .irp    lane, 0, 1, 2, 3
        mov     v\to\().s[\lane], tempw
        add     tempw, tempw, channelw
        .endr
.endm

        // An output's sums begin with its first column.
.macro  begin   l, h
        ldp     q\l, q\h, [start]
.endm

.macro  upper   l, h, w_l, w_h
        sdot    v\l\().4s, v14.16b, v\w_l\().16b
        sdot    v\h\().4s, v31.16b, v\w_h\().16b
.endm

.macro  last    l, h, w_l, w_h
        sdot    v\l\().4s, v26.16b, v\w_l\().16b
        sdot    v\h\().4s, v28.16b, v\w_h\().16b
.endm

        // The first two inputs of a column are loaded with the column before; the last one of all
        // has itself as the next.
.macro  first_two
        ldr     d14, [row0, column]
        ldr     d31, [row1, column]
.endm

.macro  load_column
        ldr     d27, [row4, column]
        zip1    v14.16b, v14.16b, v31.16b
        ldr     d15, [row2, column]
        subs    left, left, #1
        ldr     d31, [row3, column]
        csel    temp, xzr, tap_stride, eq
        tbl     v26.16b, {v26.16b, v27.16b}, v29.16b
        add     column, column, temp
        zip1    v15.16b, v15.16b, v31.16b
        tbl     v28.16b, {v27.16b, v28.16b}, v30.16b
        zip2    v31.8h, v14.8h, v15.8h
        zip1    v14.8h, v14.8h, v15.8h
.endm

        // The last column of an output, which is requantized and stored, with that of others.
.macro  finish  l, h, with0, with1, with2, with3, with4
        last    \l, \h, 12, 13
        \with0
        ldr     q15, [multiplier]
        upper   \l, \h, 8, 9
        ldr     q27, [addend]
        \with1
        \with2
        fmla    v27.4s, v\l\().4s, v15.4s
        ldr     q15, [addend, #16]
        ldr     q\l, [multiplier, #16]
        \with3
        \with4
        first_two
        fmla    v15.4s, v\h\().4s, v\l\().4s
        ldr     d\l, [sp, #64]
        ldr     d\h, [sp, #72]
        uzp1    v15.8h, v27.8h, v15.8h
        sqxtn   v15.8b, v15.8h
        smax    v15.8b, v15.8b, v\l\().8b
        smin    v15.8b, v15.8b, v\h\().8b
        st1     {v15.8b}, [out], out_stride
.endm

        // A column that is the last one of output e and the first one of output a.
.macro  column_s1 a, b, c, d, e, ah, bh, ch, dh, eh
        load_column
        begin   \a, \ah
        finish  \e, \eh, "last \d, \dh, 10, 11", "upper \d, \dh, 6, 7", \
                "upper \c, \ch, 4, 5", "upper \b, \bh, 2, 3", "upper \a, \ah, 0, 1"
        b.eq    .Lnext_s1
.endm

.macro  all_columns_s1
        add     left, left, #4
        first_two
        load_column
        begin   16, 21
        upper   16, 21, 0, 1
        first_two
        load_column
        begin   17, 22
        upper   16, 21, 2, 3
        upper   17, 22, 0, 1
        first_two
        load_column
        begin   18, 23
        upper   16, 21, 4, 5
        upper   17, 22, 2, 3
        upper   18, 23, 0, 1
        first_two
        load_column
        begin   19, 24
        last    16, 21, 10, 11
        upper   16, 21, 6, 7
        upper   17, 22, 4, 5
        upper   18, 23, 2, 3
        upper   19, 24, 0, 1
        first_two
.Lring_s1:
        column_s1 20, 19, 18, 17, 16, 25, 24, 23, 22, 21
        column_s1 16, 20, 19, 18, 17, 21, 25, 24, 23, 22
        column_s1 17, 16, 20, 19, 18, 22, 21, 25, 24, 23
        column_s1 18, 17, 16, 20, 19, 23, 22, 21, 25, 24
        column_s1 19, 18, 17, 16, 20, 24, 23, 22, 21, 25
        b       .Lring_s1
.endm

        // The same of outputs c and a, and the column after it.
.macro  columns_s2 a, b, c, ah, bh, ch
        load_column
        begin   \a, \ah
        finish  \c, \ch, "upper \b, \bh, 4, 5", "upper \a, \ah, 0, 1"
        b.eq    .Lnext_s2
        load_column
        last    \b, \bh, 10, 11
        upper   \b, \bh, 6, 7
        upper   \a, \ah, 2, 3
        first_two
.endm

.macro  all_columns_s2
        lsl     left, left, #1
        add     left, left, #3
        first_two
        load_column
        begin   16, 21
        upper   16, 21, 0, 1
        first_two
        load_column
        upper   16, 21, 2, 3
        first_two
        load_column
        begin   17, 22
        upper   16, 21, 4, 5
        upper   17, 22, 0, 1
        first_two
        load_column
        last    16, 21, 10, 11
        upper   16, 21, 6, 7
        upper   17, 22, 2, 3
        first_two
.Lring_s2:
        columns_s2 18, 17, 16, 23, 22, 21
        columns_s2 16, 18, 17, 21, 23, 22
        columns_s2 17, 16, 18, 22, 21, 23
        b       .Lring_s2
.endm

.macro  depthwise5x5 kind
func    n8_depthwise_s8_dotprod_5x5\kind, DOTPROD
        ldr     start, [args, #N8_OFF_DW_START]
        cbz     start, .Lany_\kind
        enter   80, D8_TO_D15
        ldr     out_stride, [args, #N8_OFF_DW_OUT_STRIDE]
        ldr     tap_stride, [args, #N8_OFF_DW_TAP_STRIDE]
        ldr     weights, [args, #N8_OFF_DW_WEIGHTS]
        ldr     multiplier, [args, #N8_OFF_DW_MULTIPLIER]
        ldr     addend, [args, #N8_OFF_DW_ADDEND]
        // Low bytes of the int32 limits are the int8 limits.
        spread  v14.8b, N8_OFF_DW_LO, temp
        spread  v15.8b, N8_OFF_DW_HI, temp
        stp     d14, d15, [sp, #64]
        mov     channelw, #0x0404
        movk    channelw, #0x0104, lsl #16
        indices 29, 0x10030201
        indices 30, 0x04131211
        mov     channel, #0

.Lchannels_\kind:
        arrange 0, 1, 0, 40, 80, 120
        arrange 2, 3, 8, 48, 88, 128
        arrange 4, 5, 16, 56, 96, 136
        arrange 6, 7, 24, 64, 104, 144
        arrange 8, 9, 32, 72, 112, 152
        arrange 10, 11, 160, 168, 176, 184
        ldr     d14, [weights, #192]
        movi    v15.16b, #0
        zip1    v14.16b, v15.16b, v14.16b
        couple  zip, v12.8h, v13.8h, v15.8h, v14.8h
        ldr     temp, [args, #N8_OFF_DW_ROWS]
        ldr     out, [args, #N8_OFF_DW_OUT]
        ldr     left, [args, #N8_OFF_DW_PIXELS]
        ldp     row0, row1, [temp]
        ldp     row2, row3, [temp, #16]
        ldr     row4, [temp, #32]
        add     out, out, channel
        mov     column, channel
        all_columns_\kind

.Lnext_\kind:
        add     weights, weights, #200
        add     start, start, #32
        add     multiplier, multiplier, #32
        add     addend, addend, #32
        add     channel, channel, #8
        ldr     temp, [args, #N8_OFF_DW_CHANNELS]
        cmp     channel, temp
        b.lo    .Lchannels_\kind
        leave   80, D8_TO_D15
        ret
.Lany_\kind:
        go_on   n8_depthwise_s8_neon
endfunc n8_depthwise_s8_dotprod_5x5\kind
.endm

depthwise5x5 s1
depthwise5x5 s2
