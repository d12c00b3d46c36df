// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[r][p][c], multiplier[c]), leaky by slope[c] if there is one        (5b)
// out[r][p][c] = clamp(rne(v) + zero_point, lo, hi)                                          (5)
// acc''[r][p][c] = bias[c] + sum over y, x of rows[r + y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps, step = tap_stride and two rows of outputs.
//
//   void n8_depthwise3x3s1_s8_dotprod(const struct n8_depthwise_args *args);
//
// Four rows of a column are brought together, by channels: one dot product is a column of an output,
// with weights w0 w1 w2 0 of the first row, 0 w0 w1 w2 of the second. A column serves three
// neighbouring outputs: a group has two columns from the one before and adds two.
//
// Bounds: depthwise3x3_s8_dotprod_begin.inc and depthwise3x3_s8_dotprod_end.inc.
// Registers: there, and
//
//   weights of a column    w w w 0: v0 v1, v2 v3, v4 v5    0 w w w: v6 v7, v8 v9, v10 v11
//   columns                of channels 0-3 and 4-7: v12 v13 and v14 v15, coming in: v18-v21
//
// Stack: depthwise_s8_save.inc and depthwise3x3_s8_dotprod_begin.inc.
#include "asm.h"
#include "kernel.h"

#define magic           v16

func    n8_depthwise3x3s1_s8_dotprod
#include "depthwise3x3_s8_dotprod_begin.inc"

// Weights of column `x` to `a` and `ah`, moved to the second row: `b` and `bh`. v21 is zero.
.macro  arrange x, a, ah, b, bh
        ldr     d18, [weights, #8 * \x]
        ldr     d19, [weights, #8 * \x + 24]
        ldr     d20, [weights, #8 * \x + 48]
        zip1    v18.16b, v18.16b, v19.16b
        zip1    v20.16b, v20.16b, v21.16b
        zip1    \a\().8h, v18.8h, v20.8h
        zip2    \ah\().8h, v18.8h, v20.8h
        shl     \b\().4s, \a\().4s, #8
        shl     \bh\().4s, \ah\().4s, #8
.endm

// The column at `x`, brought together in `a` and `ah`.
.macro  column x, a, ah
        ldr     d18, [row0, \x]
        ldr     d19, [row1, \x]
        ldr     d20, [row2, \x]
        ldr     d21, [row3, \x]
        zip1    v18.16b, v18.16b, v19.16b
        zip1    v20.16b, v20.16b, v21.16b
        zip1    \a\().8h, v18.8h, v20.8h
        zip2    \ah\().8h, v18.8h, v20.8h
.endm

        movi    v21.16b, #0
        arrange 0, v0, v1, v6, v7
        arrange 1, v2, v3, v8, v9
        arrange 2, v4, v5, v10, v11
        add     weights, weights, #72
#include "depthwise3x3_s8_dotprod_block.inc"
        ldr     q16, [sp, #176]
        add     column1, channel, tap_stride
        column  channel, v12, v13
        column  column1, v14, v15
        add     column0, column1, tap_stride
        add     column1, column0, tap_stride
        cmp     left, #1
        csel    column1, column0, column1, eq

        // The columns of the group before are multiplied while new ones are loaded.
.Lgroup:
        ldr     d18, [row0, column0]
        sdot    sum0l.4s, v12.16b, v0.16b
        ldr     d19, [row1, column0]
        sdot    sum0h.4s, v13.16b, v1.16b
        ldr     d20, [row2, column0]
        sdot    sum2l.4s, v12.16b, v6.16b
        ldr     d21, [row3, column0]
        sdot    sum2h.4s, v13.16b, v7.16b
        add     column0, column1, tap_stride
        sdot    sum1l.4s, v14.16b, v0.16b
        sdot    sum1h.4s, v15.16b, v1.16b
        zip1    v18.16b, v18.16b, v19.16b
        ldr     d19, [row0, column1]
        sdot    sum3l.4s, v14.16b, v6.16b
        zip1    v20.16b, v20.16b, v21.16b
        ldr     d21, [row1, column1]
        sdot    sum3h.4s, v15.16b, v7.16b
        zip1    v12.8h, v18.8h, v20.8h
        zip2    v13.8h, v18.8h, v20.8h
        ldr     d18, [row2, column1]
        sdot    sum0l.4s, v14.16b, v2.16b
        ldr     d20, [row3, column1]
        sdot    sum0h.4s, v15.16b, v3.16b
        cmp     left, #3
        sdot    sum2l.4s, v14.16b, v8.16b
        add     column1, column0, tap_stride
        sdot    sum2h.4s, v15.16b, v9.16b
        csel    column1, column0, column1, eq
        sdot    sum1l.4s, v12.16b, v2.16b
        sdot    sum1h.4s, v13.16b, v3.16b
        zip1    v19.16b, v19.16b, v21.16b
        zip1    v18.16b, v18.16b, v20.16b
        sdot    sum0l.4s, v12.16b, v4.16b
        sdot    sum0h.4s, v13.16b, v5.16b
        zip1    v14.8h, v19.8h, v18.8h
        zip2    v15.8h, v19.8h, v18.8h
        ldr     q21, [sp, #160]
        sdot    sum2l.4s, v12.16b, v10.16b
        sdot    sum2h.4s, v13.16b, v11.16b
        sdot    sum3l.4s, v12.16b, v8.16b
        sdot    sum3h.4s, v13.16b, v9.16b
        sdot    sum1l.4s, v14.16b, v4.16b
        sdot    sum1h.4s, v15.16b, v5.16b
        sdot    sum3l.4s, v14.16b, v10.16b
        sdot    sum3h.4s, v15.16b, v11.16b
#include "depthwise3x3_s8_dotprod_end.inc"
endfunc n8_depthwise3x3s1_s8_dotprod
