// SPDX-License-Identifier: Apache-2.0
//
// out[c * out_stride + r * 4] = in[r * in_stride + c * 4], words; strides are in bytes
//
//   void n8_transpose_f32_neon(void *out, size_t out_stride, const void *in, size_t in_stride,
//                              size_t rows, size_t columns);
//
// A tile is 4 x 4 words, in q0-q3. The last 4 rows or columns are a whole tile, too, which begins
// among those that are done; fewer than 4 go value by value.
//
// Bounds: reads and writes the values, nothing between them.
// Registers: below. Stack: 36 bytes, what it preserves.
#include "asm.h"

        registers r, 0, out, out_stride, in, in_stride, rows, left, next, rows_left
        // left: columns, less 4 where there are tiles; next: tile or value in `in`
        // rows_left: rows, in the same way
        registers r, 8, row0, row1, row2, row3
        // row0: of `out`, at the next tile
// Value by value: the steps of the inner loop and of the outer one.
        registers r, 8, out_inner, in_inner, out_outer, in_outer, to
value   .req lr

func    n8_transpose_f32_neon
        save    r4, r5, r6, r7, r8, r9, r10, r11, lr
        ldr     rows, [sp, #36]
        ldr     left, [sp, #40]
        cmp     rows, #4
        cmphs   left, #4
        blo     4f
        sub     left, left, #4

        // Four columns of `in`, four rows at a time; a store takes one value of each.
1:      mov     next, in
        sub     rows_left, rows, #4
        mov     row0, out
        add     row1, out, out_stride
        add     row2, row1, out_stride
        add     row3, row2, out_stride
2:      vld1.32 {d0-d1}, [next], in_stride
        vld1.32 {d2-d3}, [next], in_stride
        vld1.32 {d4-d5}, [next], in_stride
        vld1.32 {d6-d7}, [next], in_stride
        subs    rows_left, rows_left, #4
        vst4.32 {d0[0], d2[0], d4[0], d6[0]}, [row0]!
        vst4.32 {d0[1], d2[1], d4[1], d6[1]}, [row1]!
        vst4.32 {d1[0], d3[0], d5[0], d7[0]}, [row2]!
        vst4.32 {d1[1], d3[1], d5[1], d7[1]}, [row3]!
        bhs     2b
        cmn     rows_left, #4
        beq     3f
        // -3 to -1 are left: back to the last four rows.
        mla     next, rows_left, in_stride, next
        add     row0, row0, rows_left, lsl #2
        add     row1, row1, rows_left, lsl #2
        add     row2, row2, rows_left, lsl #2
        add     row3, row3, rows_left, lsl #2
        mov     rows_left, #0
        b       2b
3:      cmp     left, #0
        beq     7f
        // The next four columns, or back to the last four.
        mov     next, #4
        cmp     left, #4
        movlo   next, left
        sub     left, left, next
        mla     out, next, out_stride, out
        add     in, in, next, lsl #2
        b       1b

        // Fewer than four rows or columns: value by value, along the longer side.
4:      cmp     rows, #0
        cmpne   left, #0
        beq     7f
        cmp     rows, left
        mov     out_inner, #4
        mov     in_inner, in_stride
        mov     out_outer, out_stride
        mov     in_outer, #4
        bhi     5f
        mov     next, rows
        mov     rows, left
        mov     left, next
        mov     out_inner, out_stride
        mov     in_inner, #4
        mov     out_outer, #4
        mov     in_outer, in_stride
5:      mov     to, out
        mov     next, in
        mov     rows_left, rows
6:      ldr     value, [next], in_inner
        subs    rows_left, rows_left, #1
        str     value, [to], out_inner
        bne     6b
        add     out, out, out_outer
        add     in, in, in_outer
        subs    left, left, #1
        bne     5b
7:      pop     {r4-r11, pc}
endfunc n8_transpose_f32_neon
