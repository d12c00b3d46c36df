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
//   bytes and results, v2 128, v3 64, v4-v7 scratch, v16-v31 the table, four quarters of 64 bytes.
// Stack: none.
//
// tbl looks 64 bytes up and gives 0 for an index beyond them. A byte q is number q + 128 of the
// table, q + 64 from its second quarter, q from the third and q - 64 from the last.
#include "asm.h"

        registers x, 0, out, out_stride, in, in_stride, pixels, count, table, quarter
        registers x, 8, to, from, left, out_step, in_step, byte_x, bytes
byte    .req w13

        registers v, 0, value0, value1, middle, step, first0, first1, second0, second1
        registers q, 0, value0_q, value1_q
        registers d, 0, value0_d

        // The results of 16 bytes of each vector.
.macro  look_up vectors:vararg
    .irp i, \vectors
        eor     first\i, value\i, middle.16b
        add     second\i, value\i, step.16b
    .endr
    .irp i, \vectors
        tbl     first\i, {v16.16b-v19.16b}, first\i
        tbl     second\i, {v20.16b-v23.16b}, second\i
    .endr
    .irp i, \vectors
        orr     first\i, first\i, second\i
        sub     second\i, value\i, step.16b
    .endr
    .irp i, \vectors
        tbl     value\i, {v24.16b-v27.16b}, value\i
        tbl     second\i, {v28.16b-v31.16b}, second\i
    .endr
    .irp i, \vectors
        orr     value\i, value\i, first\i
        orr     value\i, value\i, second\i
    .endr
.endm

        // Steps to the second of two pixels: to the first, if it is alone.
.macro  steps_of_two
        cmp     left, #1
        csel    in_step, xzr, in_stride, eq
        csel    out_step, xzr, out_stride, eq
.endm

func    n8_table_s8_neon
        cbz     pixels, 9f
        cmp     count, #8
        b.lo    5f
        mov     quarter, table
        ld1     {v16.16b-v19.16b}, [quarter], #64
        ld1     {v20.16b-v23.16b}, [quarter], #64
        ld1     {v24.16b-v27.16b}, [quarter], #64
        ld1     {v28.16b-v31.16b}, [quarter]
        movi    middle.16b, #128
        movi    step.16b, #64
        subs    count, count, #16
        b.lo    3f

        // Sixteen columns of two pixels; of the last one twice, if it is alone.
1:      mov     from, in
        mov     to, out
        mov     left, pixels
2:      steps_of_two
        ldr     value0_q, [from]
        add     from, from, in_step
        ldr     value1_q, [from]
        add     from, from, in_stride
        look_up 0.16b, 1.16b
        str     value0_q, [to]
        add     to, to, out_step
        str     value1_q, [to]
        add     to, to, out_stride
        subs    left, left, #2
        b.hi    2b
        add     in, in, #16
        add     out, out, #16
        subs    count, count, #16
        b.hs    1b

        // Eight columns of two pixels.
3:      tbz     count, #3, 5f
        mov     from, in
        mov     to, out
        mov     left, pixels
4:      steps_of_two
        ldr     value0_d, [from]
        add     from, from, in_step
        ld1     {value0.d}[1], [from]
        add     from, from, in_stride
        look_up 0.16b
        str     value0_d, [to]
        add     to, to, out_step
        st1     {value0.d}[1], [to]
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
