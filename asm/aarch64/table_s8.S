// SPDX-License-Identifier: Apache-2.0
//
// out[p * out_stride + i] = table[in[p * in_stride + i] + 128]                               (8)
//
//   void n8_table_s8_neon(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
//                         size_t pixels, size_t count, const int8_t *table);
//
// Bounds: exactly `count` bytes of each pixel are read and written, and 256 of the table.
// Registers: x0-x6 the arguments; x7 next quarter of the table; x8, x9 a pixel of out and in; x10
//   pixels left; x11, x12 what leads to the second of two pixels; w13 a byte, x14 bytes left; v0, v1
//   bytes of two pixels, v2-v5 their numbers and results, v6 scratch, v7 64, v16-v31 the table, four
//   quarters of 64 bytes.
// Stack: none.
//
// tbl looks 64 bytes up and gives 0 for an index beyond them. A byte q is number q of the third
// quarter, q - 64 of the last, q - 128 of the first and q - 192 of the second, all modulo 256.
#include "asm.h"

        registers x, 0, out, out_stride, in, in_stride, pixels, count, table, quarter
        registers x, 8, to, from, left, out_step, in_step, byte_x, bytes
byte    .req w13

        registers v, 0, first, second, number0, number1, result0, result1, scratch, step
        registers q, 0, first_q, second_q
first_d .req d0
result0_d .req d4

func    n8_table_s8_neon
        cbz     pixels, 9f
        cmp     count, #8
        b.lo    5f
        mov     quarter, table
        ld1     {v16.16b-v19.16b}, [quarter], #64
        ld1     {v20.16b-v23.16b}, [quarter], #64
        ld1     {v24.16b-v27.16b}, [quarter], #64
        ld1     {v28.16b-v31.16b}, [quarter]
        movi    step.16b, #64
        subs    count, count, #16
        b.lo    3f

        // Sixteen columns of two pixels; of the last one twice, if it is alone. No in-order core
        // waits for a result: the two take turns, and the next ones, or the last ones again, are
        // loaded as soon as their registers are free.
1:      mov     from, in
        mov     to, out
        mov     left, pixels
        cmp     left, #1
        csel    in_step, in_stride, xzr, hi
        ldr     first_q, [from]
        ldr     second_q, [from, in_step]
2:      tbl     result0.16b, {v24.16b-v27.16b}, first.16b
        cmp     left, #1
        csel    out_step, out_stride, xzr, hi
        subs    left, left, #2
        csel    in_step, in_stride, xzr, hi
        add     from, from, in_step, lsl #1
        sub     number0.16b, first.16b, step.16b
        tbl     result1.16b, {v24.16b-v27.16b}, second.16b
        ldr     first_q, [from]
        sub     number1.16b, second.16b, step.16b
        tbl     scratch.16b, {v28.16b-v31.16b}, number0.16b
        cmp     left, #1
        csel    in_step, in_stride, xzr, gt
        cmp     left, #0
        sub     number0.16b, number0.16b, step.16b
        tbl     number1.16b, {v28.16b-v31.16b}, number1.16b
        orr     result0.16b, result0.16b, scratch.16b
        tbl     scratch.16b, {v16.16b-v19.16b}, number0.16b
        orr     result1.16b, result1.16b, number1.16b
        sub     number0.16b, number0.16b, step.16b
        add     number1.16b, second.16b, step.16b
        sub     second.16b, second.16b, step.16b
        tbl     number0.16b, {v20.16b-v23.16b}, number0.16b
        orr     result0.16b, result0.16b, scratch.16b
        sub     second.16b, second.16b, step.16b
        tbl     number1.16b, {v20.16b-v23.16b}, number1.16b
        orr     result0.16b, result0.16b, number0.16b
        tbl     scratch.16b, {v16.16b-v19.16b}, second.16b
        st1     {result0.16b}, [to], out_step
        ldr     second_q, [from, in_step]
        orr     result1.16b, result1.16b, number1.16b
        orr     result1.16b, result1.16b, scratch.16b
        st1     {result1.16b}, [to], out_stride
        b.gt    2b
        add     in, in, #16
        add     out, out, #16
        subs    count, count, #16
        b.hs    1b

        // Eight columns of two pixels.
3:      tbz     count, #3, 5f
        mov     from, in
        mov     to, out
        mov     left, pixels
4:      cmp     left, #1
        csel    in_step, in_stride, xzr, hi
        csel    out_step, out_stride, xzr, hi
        ldr     first_d, [from]
        add     from, from, in_step
        ld1     {first.d}[1], [from]
        add     from, from, in_stride
        sub     number0.16b, first.16b, step.16b
        tbl     result0.16b, {v24.16b-v27.16b}, first.16b
        sub     number1.16b, number0.16b, step.16b
        add     first.16b, first.16b, step.16b
        tbl     number0.16b, {v28.16b-v31.16b}, number0.16b
        tbl     number1.16b, {v16.16b-v19.16b}, number1.16b
        orr     result0.16b, result0.16b, number0.16b
        tbl     first.16b, {v20.16b-v23.16b}, first.16b
        orr     result0.16b, result0.16b, number1.16b
        orr     result0.16b, result0.16b, first.16b
        str     result0_d, [to]
        add     to, to, out_step
        st1     {result0.d}[1], [to]
        add     to, to, out_stride
        subs    left, left, #2
        b.hi    4b
        add     in, in, #8
        add     out, out, #8

        // Up to 7 columns, byte by byte.
5:      ands    count, count, #7
        b.eq    9f
6:      mov     from, in
        mov     to, out
        mov     bytes, count
7:      ldrb    byte, [from], #1
        eor     byte, byte, #128
        ldrb    byte, [table, byte_x]
        strb    byte, [to], #1
        subs    bytes, bytes, #1
        b.ne    7b
        add     in, in, in_stride
        add     out, out, out_stride
        subs    pixels, pixels, #1
        b.ne    6b
9:      ret
endfunc n8_table_s8_neon
