// SPDX-License-Identifier: Apache-2.0
//
// out[p * out_stride + i] = tables[i][in[p * in_stride + i] + 128], i < 8                    (8)
//
//   void n8_tables_s8_neon(int8_t *out, size_t out_stride, const int8_t *in, size_t in_stride,
//                          size_t pixels, const int8_t *const *tables);
//
// No vector holds eight tables: the bytes of a pixel are looked up one by one, in the middles of the
// tables, which stay in registers, and put together again.
//
// Bounds: exactly 8 bytes of each pixel are read and written, and 256 of each table.
// Registers: x0-x5 the arguments; x6-x13 the middles of the tables; x14 a pixel, x15 its result, x5,
//   x16, x17, x19, x20 bytes.
// Stack: 16 bytes, x19 and x20.
#include "asm.h"

        registers x, 0, out, out_stride, in, in_stride, pixels, tables
        registers x, 14, pixel, result

func    n8_tables_s8_neon
        enter   16, x19, x20
        cbz     pixels, 2f
        ldp     x6, x7, [tables]
        ldp     x8, x9, [tables, #16]
        ldp     x10, x11, [tables, #32]
        ldp     x12, x13, [tables, #48]
        add     x6, x6, #128
        add     x7, x7, #128
        add     x8, x8, #128
        add     x9, x9, #128
        add     x10, x10, #128
        add     x11, x11, #128
        add     x12, x12, #128
        add     x13, x13, #128

        ldr     pixel, [in]

        // Each byte is used three instructions or more after it was asked for. The next pixel is
        // asked for early, too: after the last one the last one again.
1:      sbfx    result, pixel, #0, #8
        sbfx    x5, pixel, #8, #8
        ldrb    w15, [x6, result]
        sbfx    x16, pixel, #16, #8
        ldrb    w5, [x7, x5]
        sbfx    x17, pixel, #24, #8
        ldrb    w16, [x8, x16]
        sbfx    x19, pixel, #32, #8
        ldrb    w17, [x9, x17]
        sbfx    x20, pixel, #40, #8
        ldrb    w19, [x10, x19]
        bfi     result, x5, #8, #8
        ldrb    w20, [x11, x20]
        sbfx    x5, pixel, #48, #8
        bfi     result, x16, #16, #8
        asr     x16, pixel, #56
        ldrb    w5, [x12, x5]
        subs    pixels, pixels, #1
        ldrb    w16, [x13, x16]
        bfi     result, x17, #24, #8
        csel    x17, in_stride, xzr, ne
        bfi     result, x19, #32, #8
        add     in, in, x17
        bfi     result, x20, #40, #8
        ldr     pixel, [in]
        bfi     result, x5, #48, #8
        bfi     result, x16, #56, #8
        str     result, [out]
        add     out, out, out_stride
        b.ne    1b
2:      leave   16, x19, x20
        ret
endfunc n8_tables_s8_neon
