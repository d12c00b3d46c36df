// SPDX-License-Identifier: Apache-2.0
//
// out[p * out_stride + i] = tables[i][in[p * in_stride + i] + 128], i < 8                    (8)
//
//   void n8_tables_s8_neon(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
//                          size_t pixels, const int8_t *const *tables);
//
// Four columns, then the other four: the bytes of a word are looked up one by one, in the middles of
// the tables, which stay in registers, and put together again.
//
// Bounds: exactly 8 bytes of each pixel are read and written, and 256 of each table.
// Registers: below; r5-r8 the middles of four tables.
// Stack: 36 bytes, what it preserves.
#include "asm.h"

        registers r, 0, out, out_stride, in, in_stride, left
        // left: pixels
        registers r, 9, word, tables, pixels, byte0
        // tables: the next ones
byte1   .req lr

.macro  four_columns
        ldm     tables!, {r5-r8}
        mov     left, pixels
        add     r5, r5, #128
        add     r6, r6, #128
        add     r7, r7, #128
        add     r8, r8, #128
1:      ldr     word, [in]
        add     in, in, in_stride
        subs    left, left, #1
        sxtb    byte0, word
        sxtb    byte1, word, ror #8
        ldrb    byte0, [r5, byte0]
        ldrb    byte1, [r6, byte1]
        orr     byte0, byte0, byte1, lsl #8
        sxtb    byte1, word, ror #16
        ldrb    word, [r8, word, asr #24]
        ldrb    byte1, [r7, byte1]
        orr     byte0, byte0, word, lsl #24
        orr     byte0, byte0, byte1, lsl #16
        str     byte0, [out]
        add     out, out, out_stride
        bne     1b
.endm

func    n8_tables_s8_neon
        save    r4, r5, r6, r7, r8, r9, r10, r11, lr
        ldr     pixels, [sp, #36]
        ldr     tables, [sp, #40]
        cmp     pixels, #0
        beq     2f
        four_columns
        mls     in, pixels, in_stride, in       // back to the first pixel
        mls     out, pixels, out_stride, out
        add     in, in, #4
        add     out, out, #4
        four_columns
2:      restore r4, r5, r6, r7, r8, r9, r10, r11, lr
        bx      lr
endfunc n8_tables_s8_neon
