// SPDX-License-Identifier: Apache-2.0
//
// out[p * out_stride + i] = table[in[p * in_stride + i] + 128]                               (8)
//
//   void n8_table_s8_neon(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
//                         size_t pixels, size_t count, const int8_t *table);
//
// Sixteen columns of three pixels at a time: vtbl looks up 32 bytes and gives 0 for an index beyond
// them; vtbx leaves what is there. So 32 is subtracted from the indices after each eighth of the
// table, and each index is below 32 for one of the eight. The second half of the table takes the
// place of the first one, an eighth as soon as all 48 values have been looked up in it.
//
// Bounds: exactly `count` bytes of each pixel are read and written, and 256 of the table.
// Registers: below; q0-q2 48 indices, q3-q5 results, q6 32, q7 128, q8-q15 half of the table.
// Stack: 96 bytes, what it preserves.
#include "asm.h"

        registers r, 0, out, out_stride, in, in_stride, pixels, count, table, from
        // table: its middle after the sixteen columns
        registers r, 8, to, left, word
        // left: pixels, or bytes; word: four values
eighth  .req r12                // the next one
byte1   .req lr
byte0   .req r12                // the index of one, and what the table has there

// 48 values in an eighth of the table, which is in the registers \first to \last.
.macro  look_up operation, first, last
        \operation d6, {\first-\last}, d0
        \operation d7, {\first-\last}, d1
        \operation d8, {\first-\last}, d2
        \operation d9, {\first-\last}, d3
        \operation d10, {\first-\last}, d4
        \operation d11, {\first-\last}, d5
.endm

// \pointer to pixel \number of those of this round, which is the one before it if there are fewer.
.macro  next_of number, pointer, stride
        cmp     left, #\number
        addhs   \pointer, \pointer, \stride
.endm

// The four values of \values.
.macro  four    values
        sxtb    byte0, \values
        sxtb    byte1, \values, ror #8
        ldrb    byte0, [table, byte0]
        ldrb    byte1, [table, byte1]
        orr     byte0, byte0, byte1, lsl #8
        sxtb    byte1, \values, ror #16
        ldrb    \values, [table, \values, asr #24]
        ldrb    byte1, [table, byte1]
        orr     byte0, byte0, byte1, lsl #16
        orr     \values, byte0, \values, lsl #24
.endm

func    n8_table_s8_neon
        save    r4, r5, r6, r7, r8, r9, r10, lr
        ldr     pixels, [sp, #32]
        ldr     count, [sp, #36]
        ldr     table, [sp, #40]
        cmp     pixels, #0
        beq     9f
        subs    count, count, #16
        blo     3f
        save_double d8, d9, d10, d11, d12, d13, d14, d15
        vmov.i8 q6, #32
        vmov.i8 q7, #128

1:      mov     from, in
        mov     to, out
        mov     left, pixels
2:      vld1.8  {d0-d1}, [from]
        next_of 2, from, in_stride
        vld1.8  {d2-d3}, [from]
        next_of 3, from, in_stride
        vld1.8  {d4-d5}, [from], in_stride
        mov     eighth, table
        vld1.8  {d16-d19}, [eighth]!
        vld1.8  {d20-d23}, [eighth]!
        each    veor, q7, q0, q1, q2            // + 128
        vld1.8  {d24-d27}, [eighth]!
        vld1.8  {d28-d31}, [eighth]!
        look_up vtbl.8, d16, d19
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d16-d19}, [eighth]!
        look_up vtbx.8, d20, d23
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d20-d23}, [eighth]!
        look_up vtbx.8, d24, d27
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d24-d27}, [eighth]!
        look_up vtbx.8, d28, d31
        each    vsub.i8, q6, q0, q1, q2
        vld1.8  {d28-d31}, [eighth]
        look_up vtbx.8, d16, d19
        each    vsub.i8, q6, q0, q1, q2
        look_up vtbx.8, d20, d23
        each    vsub.i8, q6, q0, q1, q2
        look_up vtbx.8, d24, d27
        each    vsub.i8, q6, q0, q1, q2
        look_up vtbx.8, d28, d31
        vst1.8  {d6-d7}, [to]
        next_of 2, to, out_stride
        vst1.8  {d8-d9}, [to]
        next_of 3, to, out_stride
        vst1.8  {d10-d11}, [to], out_stride
        subs    left, left, #3
        bhi     2b
        add     in, in, #16
        add     out, out, #16
        subs    count, count, #16
        bhs     1b
        restore_double d8, d9, d10, d11, d12, d13, d14, d15

        // Up to 15 columns, pixel by pixel: four in a word, then single bytes.
3:      ands    count, count, #15
        beq     9f
        add     table, table, #128
4:      mov     from, in
        mov     to, out
        subs    left, count, #4
        blo     6f
5:      ldr     word, [from], #4
        subs    left, left, #4
        four    word
        str     word, [to], #4
        bhs     5b
6:      adds    left, left, #4
        beq     8f
7:      ldrsb   word, [from], #1
        subs    left, left, #1
        ldrb    word, [table, word]
        strb    word, [to], #1
        bne     7b
8:      add     in, in, in_stride
        add     out, out, out_stride
        subs    pixels, pixels, #1
        bne     4b
9:      restore r4, r5, r6, r7, r8, r9, r10, lr
        bx      lr
endfunc n8_table_s8_neon
