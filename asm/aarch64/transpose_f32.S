// SPDX-License-Identifier: Apache-2.0
//
// out[c * out_stride + r * 4] = in[r * in_stride + c * 4], words at strides in bytes
//
//   void n8_transpose_f32_neon(void *out, size_t out_stride, const void *in, size_t in_stride,
//                              size_t rows, size_t columns);
//
// Bounds: reads and writes the values, nothing between them. The last of 4 rows, or columns, or
//   more are a whole tile, too, which begins among those that are done.
// Registers: x0-x5 the arguments, x5 columns left less 4; x6 next tile in `in`, x7 rows left less
//   4, x8-x11 next tile in four rows of `out`; without tiles x8, x9 the steps of the inner loop in
//   `out` and `in`, x10, x11 those of the outer one, x12 next value in `out`, x13 how many there
//   are, w14 a value; v0-v7 a tile.
// Stack: none.
#include "asm.h"

        registers x, 0, out, out_stride, in, in_stride, rows, left, next, rows_left
        registers x, 8, row0, row1, row2, row3, to, inner
        registers x, 8, out_inner, in_inner, out_outer, in_outer
word    .req x15
value   .req w14

func    n8_transpose_f32_neon
        cmp     rows, #4
        ccmp    left, #4, #0, hs
        b.lo    4f
        sub     left, left, #4

        // Four columns of `in`, four rows at a time.
1:      mov     next, in
        sub     rows_left, rows, #4
        mov     row0, out
        add     row1, out, out_stride
        add     row2, row1, out_stride
        add     row3, row2, out_stride
2:      ld1     {v0.4s}, [next], in_stride
        ld1     {v1.4s}, [next], in_stride
        ld1     {v2.4s}, [next], in_stride
        ld1     {v3.4s}, [next], in_stride
        couple  zip, v4.4s, v5.4s, v0.4s, v2.4s
        couple  zip, v6.4s, v7.4s, v1.4s, v3.4s
        couple  zip, v0.4s, v1.4s, v4.4s, v6.4s
        couple  zip, v2.4s, v3.4s, v5.4s, v7.4s
        subs    rows_left, rows_left, #4
        str     q0, [row0], #16
        str     q1, [row1], #16
        str     q2, [row2], #16
        str     q3, [row3], #16
        b.hs    2b
        cmn     rows_left, #4
        b.eq    3f
        // -3 to -1 are left: back to the last four rows.
        madd    next, rows_left, in_stride, next
        add     row0, row0, rows_left, lsl #2
        add     row1, row1, rows_left, lsl #2
        add     row2, row2, rows_left, lsl #2
        add     row3, row3, rows_left, lsl #2
        mov     rows_left, #0
        b       2b
3:      cbz     left, 7f
        // The next four columns, or back to the last four.
        mov     next, #4
        cmp     left, #4
        csel    next, left, next, lo
        sub     left, left, next
        madd    out, next, out_stride, out
        add     in, in, next, lsl #2
        b       1b

        // Less than four rows or columns: value by value, along the longer ones.
4:      cbz     rows, 7f
        cbz     left, 7f
        mov     word, #4
        cmp     rows, left
        csel    inner, rows, left, hi
        csel    left, left, rows, hi
        csel    out_inner, word, out_stride, hi
        csel    in_inner, in_stride, word, hi
        csel    out_outer, out_stride, word, hi
        csel    in_outer, word, in_stride, hi
5:      mov     to, out
        mov     next, in
        mov     rows_left, inner
6:      ldr     value, [next]
        add     next, next, in_inner
        subs    rows_left, rows_left, #1
        str     value, [to]
        add     to, to, out_inner
        b.ne    6b
        add     out, out, out_outer
        add     in, in, in_outer
        subs    left, left, #1
        b.ne    5b
7:      ret
endfunc n8_transpose_f32_neon
