// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[r][p][c], multiplier[c]), leaky by slope[c] if there is one        (5b)
// out[r][p][c] = clamp(rne(v) + zero_point, lo, hi)                                          (5)
// acc''[r][p][c] = bias[c] + sum over y, x of
//                  rows[2 * r + y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps, step = 2 * tap_stride and two rows of outputs.
//
//   void n8_depthwise3x3s2_s8_dotprod(const struct n8_depthwise_args *args);
//
// The columns 1 and 2, 3 and 4, ... of a row are brought together in pairs, by channels, and then two
// pairs in fours, each of which is multiplied at once:
//
//   T   of rows 0 and 1    0 w00 0 w10    of output 0, whose column 0 ends the pair before
//                          w01 w02 w11 w12
//   M   of row 2           0 w20 w21 w22    0 w00 w01 w02    the pair before and this one
//   B   of rows 3 and 4    0 w10 0 w20      w11 w12 w21 w22
//
// The first row of outputs is of T and M, the second of M and B. A group has the first fours of T
// and B and a pair of M from the one before.
//
// Bounds: depthwise3x3_s8_dotprod_begin.inc and depthwise3x3_s8_dotprod_end.inc.
// Registers: there, and
//
//   weights    T: v0 v1, v2 v3    M: v4 v5, v6 v7    B: v8 v9, v10 v11    in the order of above,
//              channels 0-3 and 4-7
//   inputs     T v12 v13, B v14 v15, pair of M v16; others come and go
//
// Stack: depthwise_s8_save.inc and depthwise3x3_s8_dotprod_begin.inc. The layout of all arrays:
// runtime/kernel.h. conv.c, conv_prove.c and conv_depthwise.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define magic           v19

#define column2         x8
#define column3         x9

func    n8_depthwise3x3s2_s8_dotprod, DOTPROD
#include "depthwise3x3_s8_dotprod_begin.inc"

// The first column, alone, as the second of a pair of rows `a` and `b`.
.macro  first   a, b, to, toh
        ldr     d18, [\a, column0]
        ldr     d19, [\b, column0]
        zip1    v18.16b, v21.16b, v18.16b
        zip1    v19.16b, v21.16b, v19.16b
        zip1    \to\().8h, v18.8h, v19.8h
        zip2    \toh\().8h, v18.8h, v19.8h
.endm

        // Pairs of weights: 0 w00, w01 w02, ... in v12-v14 and v18-v20, then fours.
        movi    v21.16b, #0
        ld1     {v12.8b, v13.8b, v14.8b}, [weights], #24
        ld1     {v15.8b, v16.8b, v17.8b}, [weights], #24
        ld1     {v18.8b, v19.8b, v20.8b}, [weights], #24
        zip1    v12.16b, v21.16b, v12.16b
        zip1    v13.16b, v13.16b, v14.16b
        zip1    v15.16b, v21.16b, v15.16b
        zip1    v16.16b, v16.16b, v17.16b
        zip1    v18.16b, v21.16b, v18.16b
        zip1    v19.16b, v19.16b, v20.16b
        zip1    v0.8h, v12.8h, v15.8h
        zip2    v1.8h, v12.8h, v15.8h
        zip1    v2.8h, v13.8h, v16.8h
        zip2    v3.8h, v13.8h, v16.8h
        zip1    v4.8h, v18.8h, v19.8h
        zip2    v5.8h, v18.8h, v19.8h
        zip1    v6.8h, v12.8h, v13.8h
        zip2    v7.8h, v12.8h, v13.8h
        zip1    v8.8h, v15.8h, v18.8h
        zip2    v9.8h, v15.8h, v18.8h
        zip1    v10.8h, v16.8h, v19.8h
        zip2    v11.8h, v16.8h, v19.8h
#include "depthwise3x3_s8_dotprod_block.inc"
        ldr     row4, [temp0, #32]
        cbnz    flag, .Lleft
        first   row0, row1, v12, v13
        first   row3, row4, v14, v15
        ldr     d16, [row2, column0]
        zip1    v16.16b, v21.16b, v16.16b
.Lprimed:
        add     column0, column0, tap_stride
        add     column1, column0, tap_stride
        add     column2, column1, tap_stride
        add     column3, column2, tap_stride
        cmp     left, #1
        csel    column2, column1, column2, eq
        csel    column3, column1, column3, eq

        // The columns of the group before are multiplied while new ones are loaded.
.Lgroup:
        ldr     d18, [row0, column0]
        sdot    sum0l.4s, v12.16b, v0.16b
        ldr     d19, [row0, column1]
        sdot    sum0h.4s, v13.16b, v1.16b
        ldr     d20, [row1, column0]
        sdot    sum2l.4s, v14.16b, v8.16b
        ldr     d21, [row1, column1]
        sdot    sum2h.4s, v15.16b, v9.16b
        ldr     d14, [row2, column0]
        zip1    v18.16b, v18.16b, v19.16b
        ldr     d15, [row2, column1]
        ldr     d19, [row3, column0]
        zip1    v20.16b, v20.16b, v21.16b
        ldr     d21, [row3, column1]
        zip1    v12.8h, v18.8h, v20.8h
        zip2    v13.8h, v18.8h, v20.8h
        ldr     d18, [row4, column0]
        zip1    v14.16b, v14.16b, v15.16b
        ldr     d20, [row4, column1]
        sdot    sum0l.4s, v12.16b, v2.16b
        sdot    sum0h.4s, v13.16b, v3.16b
        sdot    sum1l.4s, v12.16b, v0.16b
        sdot    sum1h.4s, v13.16b, v1.16b
        zip1    v15.8h, v16.8h, v14.8h
        zip2    v16.8h, v16.8h, v14.8h
        zip1    v19.16b, v19.16b, v21.16b
        ldr     d21, [row0, column2]
        zip1    v18.16b, v18.16b, v20.16b
        ldr     d20, [row0, column3]
        sdot    sum0l.4s, v15.16b, v4.16b
        sdot    sum0h.4s, v16.16b, v5.16b
        sdot    sum2l.4s, v15.16b, v6.16b
        sdot    sum2h.4s, v16.16b, v7.16b
        zip1    v12.8h, v19.8h, v18.8h
        ldr     d15, [row1, column2]
        zip2    v13.8h, v19.8h, v18.8h
        ldr     d16, [row1, column3]
        zip1    v21.16b, v21.16b, v20.16b
        ldr     d18, [row2, column2]
        sdot    sum2l.4s, v12.16b, v10.16b
        sdot    sum2h.4s, v13.16b, v11.16b
        zip1    v15.16b, v15.16b, v16.16b
        ldr     d16, [row2, column3]
        sdot    sum3l.4s, v12.16b, v8.16b
        sdot    sum3h.4s, v13.16b, v9.16b
        ldr     d19, [row3, column2]
        zip1    v12.8h, v21.8h, v15.8h
        ldr     d20, [row3, column3]
        zip2    v13.8h, v21.8h, v15.8h
        ldr     d21, [row4, column2]
        zip1    v16.16b, v18.16b, v16.16b
        ldr     d18, [row4, column3]
        sdot    sum1l.4s, v12.16b, v2.16b
        sdot    sum1h.4s, v13.16b, v3.16b
        zip1    v15.8h, v14.8h, v16.8h
        zip2    v14.8h, v14.8h, v16.8h
        zip1    v19.16b, v19.16b, v20.16b
        sdot    sum1l.4s, v15.16b, v4.16b
        sdot    sum1h.4s, v14.16b, v5.16b
        zip1    v18.16b, v21.16b, v18.16b
        ldr     q21, [sp, #160]
        sdot    sum3l.4s, v15.16b, v6.16b
        sdot    sum3h.4s, v14.16b, v7.16b
        zip1    v14.8h, v19.8h, v18.8h
        zip2    v15.8h, v19.8h, v18.8h
        ldr     q19, [sp, #176]
        add     column0, column3, tap_stride
        sdot    sum3l.4s, v14.16b, v10.16b
        sdot    sum3h.4s, v15.16b, v11.16b
        add     column1, column0, tap_stride
        add     column2, column1, tap_stride
        add     column3, column2, tap_stride
        cmp     left, #3
        csel    column2, column1, column2, eq
        csel    column3, column1, column3, eq
#include "depthwise3x3_s8_dotprod_end.inc"

        // The first column is padding.
.Lleft:
        add     temp0, args, #N8_OFF_DW_IN_ZERO_POINT
        ld1r    {v16.16b}, [temp0]
        zip1    v16.16b, v21.16b, v16.16b
        mov     v12.16b, v16.16b
        mov     v13.16b, v16.16b
        mov     v14.16b, v16.16b
        mov     v15.16b, v16.16b
        b       .Lprimed
endfunc n8_depthwise3x3s2_s8_dotprod
