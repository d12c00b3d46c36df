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
// Stack: depthwise_s8_save.inc and depthwise3x3_s8_dotprod_begin.inc. The layout of all arrays:
// runtime/kernel.h. conv.c, conv_prove.c and conv_depthwise.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define magic           v16

#define edge            x8              // outputs of the row that are left where one sees padding
#define edgew           w8
#define last            x9              // the last column that is not padding

func    n8_depthwise3x3s1_s8_dotprod, DOTPROD
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

// A column of padding, in `a` and `ah`.
.macro  padded  a, ah
        add     temp0, args, #N8_OFF_DW_IN_ZERO_POINT
        ld1r    {\a\().16b}, [temp0]
        mov     \ah\().16b, \a\().16b
.endm

        movi    v21.16b, #0
        arrange 0, v0, v1, v6, v7
        arrange 1, v2, v3, v8, v9
        arrange 2, v4, v5, v10, v11
        add     weights, weights, #72
#include "depthwise3x3_s8_dotprod_block.inc"
        ldr     q16, [sp, #176]
        ldr     edgew, [args, #N8_OFF_DW_RIGHT]
        sub     temp0, left, edge
        madd    last, temp0, tap_stride, tap_stride
        add     last, last, column0
        cbnz    flag, .Lleft
        column  column0, v12, v13
.Lprimed:
        add     column1, column0, tap_stride
        column  column1, v14, v15
        add     column0, column1, tap_stride
        cmp     column0, last
        csel    column0, column0, last, lo
        add     column1, column0, tap_stride
        cmp     column1, last
        csel    column1, column1, last, lo

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
        cmp     left, edge
        b.eq    .Lright_first
.Lfirst:
        ldr     d18, [row2, column1]
        sdot    sum0l.4s, v14.16b, v2.16b
        ldr     d20, [row3, column1]
        sdot    sum0h.4s, v15.16b, v3.16b
        add     column0, column1, tap_stride
        sdot    sum2l.4s, v14.16b, v8.16b
        cmp     column0, last
        csel    column0, column0, last, lo
        sdot    sum2h.4s, v15.16b, v9.16b
        add     column1, column0, tap_stride
        sdot    sum1l.4s, v12.16b, v2.16b
        cmp     column1, last
        csel    column1, column1, last, lo
        sdot    sum1h.4s, v13.16b, v3.16b
        zip1    v19.16b, v19.16b, v21.16b
        zip1    v18.16b, v18.16b, v20.16b
        sdot    sum0l.4s, v12.16b, v4.16b
        sdot    sum0h.4s, v13.16b, v5.16b
        zip1    v14.8h, v19.8h, v18.8h
        zip2    v15.8h, v19.8h, v18.8h
        cmp     left, edge, lsl #1
        b.eq    .Lright_second
.Lsecond:
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

        // Columns of padding.
.Lleft:
        padded  v12, v13
        b       .Lprimed
.Lright_first:
        padded  v12, v13
        b       .Lfirst
.Lright_second:
        padded  v14, v15
        b       .Lsecond
endfunc n8_depthwise3x3s1_s8_dotprod
