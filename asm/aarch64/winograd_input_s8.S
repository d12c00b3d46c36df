// SPDX-License-Identifier: Apache-2.0
//
// The input of a tile of Winograd, 36 planes from 6x6 pixels                               (13)
//
//   void n8_winograd_input_s8_neon(int16_t *out, size_t plane, const int8_t *in, ptrdiff_t row,
//                                  ptrdiff_t pixel, size_t channels);
//
// Eight channels at a time. 36 vectors do not fit the registers, so a half of the points of the
// vertical direction follows the other: 1, -1, infinity, then 0, 2, -2, both from all pixels. Two
// columns are transformed at once, then each row, so that no operation waits for the one before it;
// loads and stores are of 64 bits, which the Cortex-A55 begins together with an operation, and the
// A53 the stores.
//
//   v14-v19, v20-v25, v26-v31   a point of the vertical direction each, by columns
//
// Bounds: |pixel| <= 128, so |a column's value| <= 1280 and |a plane's value| <= 12800.
// Registers: x0-x17; v0-v9 pixels of two columns, later two temporaries of each row; v10-v12
//   constants.
// Stack: 80 bytes, d8-d15 and x30.
#include "asm.h"

        registers x, 0, out, plane, line0, row, pixel, channels, line1, line2
        registers x, 8, line3, line4, line5, pixel2, pixel3, pixel4, pixel5, low
        registers x, 16, high, far_low
far_high .req x3                // row is not needed any more

        registers v, 10, four, less_four, less_five

        // Loads one pixel each of two columns, or none.
.macro  pixels  reg_a, reg_b, line, a, b
    .ifnb \a
        ldr     d\reg_a, [\line, \a]
        ldr     d\reg_b, [\line, \b]
    .endif
.endm

        // Points 1, -1 and infinity of columns with the pixels 1-5 in v0-v4 and in v5-v9, while
        // those of the columns at \a and \b are loaded.
.macro  columns first_a, second_a, third_a, first_b, second_b, third_b, a, b
        smull   v0.8h, v0.8b, less_four.8b
        smull   v5.8h, v5.8b, less_four.8b
        smull   v\first_a\().8h, v1.8b, less_four.8b
        smull   v\first_b\().8h, v6.8b, less_four.8b
        pixels  1, 6, line2, \a, \b
        smull   v\third_a\().8h, v2.8b, less_five.8b
        smull   v\third_b\().8h, v7.8b, less_five.8b
        saddw   v\first_a\().8h, v\first_a\().8h, v3.8b
        saddw   v\first_b\().8h, v\first_b\().8h, v8.8b
        pixels  3, 8, line4, \a, \b
        saddw   v\third_a\().8h, v\third_a\().8h, v4.8b
        saddw   v\third_b\().8h, v\third_b\().8h, v9.8b
        pixels  4, 9, line5, \a, \b
        saddw   v2.8h, v0.8h, v2.8b
        saddw   v7.8h, v5.8h, v7.8b
        sub     v\third_a\().8h, v\third_a\().8h, v0.8h
        sub     v\third_b\().8h, v\third_b\().8h, v5.8h
        pixels  0, 5, line1, \a, \b
        sub     v\second_a\().8h, v\first_a\().8h, v2.8h
        sub     v\second_b\().8h, v\first_b\().8h, v7.8h
        add     v\first_a\().8h, v\first_a\().8h, v2.8h
        add     v\first_b\().8h, v\first_b\().8h, v7.8h
        pixels  2, 7, line3, \a, \b
.endm

        // Points 0, 2 and -2 in the same way, from pixels 0-4.
.macro  columns_0 first_a, second_a, third_a, first_b, second_b, third_b, a, b
        ssubl   v3.8h, v3.8b, v1.8b
        ssubl   v8.8h, v8.8b, v6.8b
        pixels  1, 6, line1, \a, \b
        ssubl   v\first_a\().8h, v4.8b, v2.8b
        ssubl   v\first_b\().8h, v9.8b, v7.8b
        pixels  4, 9, line4, \a, \b
        add     v3.8h, v3.8h, v3.8h
        add     v8.8h, v8.8h, v8.8h
        ssubl   v0.8h, v0.8b, v2.8b
        ssubl   v5.8h, v5.8b, v7.8b
        pixels  2, 7, line2, \a, \b
        add     v\second_a\().8h, v\first_a\().8h, v3.8h
        add     v\second_b\().8h, v\first_b\().8h, v8.8h
        sub     v\third_a\().8h, v\first_a\().8h, v3.8h
        sub     v\third_b\().8h, v\first_b\().8h, v8.8h
        pixels  3, 8, line3, \a, \b
        mla     v\first_a\().8h, v0.8h, four.8h
        mla     v\first_b\().8h, v5.8h, four.8h
        pixels  0, 5, line0, \a, \b
.endm

.macro  store   low, high, value
    .ifnb \value
        st1     {v\value\().8b}, [\low], plane
        st1     {v\value\().d}[1], [\high], plane
    .endif
.endm

        // One row, and the store of the one before it, whose points are in \p0-\p5. The points of
        // this one are left in c1, c4, c5, t0, c3 and c2.
.macro  line    c0, c1, c2, c3, c4, c5, t0, t1, p0, p1, p2, p3, p4, p5
        sub     v\t0\().8h, v\c4\().8h, v\c2\().8h
        sub     v\t1\().8h, v\c3\().8h, v\c1\().8h
        store   low, high, \p0
        sub     v\c5\().8h, v\c5\().8h, v\c3\().8h
        mls     v\c4\().8h, v\c2\().8h, four.8h
        store   low, high, \p1
        mls     v\c3\().8h, v\c1\().8h, four.8h
        sub     v\c0\().8h, v\c0\().8h, v\c2\().8h
        store   low, high, \p2
        add     v\c2\().8h, v\t1\().8h, v\t1\().8h
        mls     v\c5\().8h, v\t1\().8h, four.8h
        store   low, high, \p3
        add     v\c1\().8h, v\c4\().8h, v\c3\().8h
        sub     v\c4\().8h, v\c4\().8h, v\c3\().8h
        store   far_low, far_high, \p4
        add     v\c3\().8h, v\t0\().8h, v\c2\().8h
        sub     v\c2\().8h, v\t0\().8h, v\c2\().8h
        store   far_low, far_high, \p5
        mla     v\t0\().8h, v\c0\().8h, four.8h
.endm

func    n8_winograd_input_s8_neon
        enter   80, D8_TO_D15
        str     x30, [sp, #64]
        .cfi_rel_offset x30, 64
        add     line1, line0, row
        add     line2, line0, row, lsl #1
        add     line3, line1, row, lsl #1
        add     line4, line0, row, lsl #2
        add     line5, line1, row, lsl #2
        lsl     pixel2, pixel, #1
        add     pixel3, pixel, pixel, lsl #1
        lsl     pixel4, pixel, #2
        add     pixel5, pixel, pixel, lsl #2
        movi    four.8h, #4
        movi    less_four.8b, #256 - 4
        movi    less_five.8b, #256 - 5

1:      add     far_low, out, plane, lsl #4
        add     far_low, far_low, plane, lsl #3
        pixels  0, 5, line1, xzr, pixel
        pixels  1, 6, line2, xzr, pixel
        pixels  2, 7, line3, xzr, pixel
        pixels  3, 8, line4, xzr, pixel
        pixels  4, 9, line5, xzr, pixel
        mov     low, out
        add     high, out, #8
        add     far_high, far_low, #8
        columns 14, 20, 26, 15, 21, 27, pixel2, pixel3
        columns 16, 22, 28, 17, 23, 29, pixel4, pixel5
        columns 18, 24, 30, 19, 25, 31
        bl      .Llines
        pixels  3, 8, line3, xzr, pixel
        pixels  1, 6, line1, xzr, pixel
        pixels  4, 9, line4, xzr, pixel
        pixels  2, 7, line2, xzr, pixel
        pixels  0, 5, line0, xzr, pixel
        columns_0 14, 20, 26, 15, 21, 27, pixel2, pixel3
        columns_0 16, 22, 28, 17, 23, 29, pixel4, pixel5
        columns_0 18, 24, 30, 19, 25, 31
        bl      .Llines
        add     line0, line0, #8
        add     line1, line1, #8
        add     line2, line2, #8
        add     line3, line3, #8
        add     line4, line4, #8
        add     line5, line5, #8
        add     out, out, #16
        subs    channels, channels, #8
        b.ne    1b

        restore 16, d10, d11, d12, d13, d14, d15
        ldr     x30, [sp, #64]
        ldp     d8, d9, [sp], #80
        .cfi_def_cfa_offset 0
        restored D8_TO_D15, x30
        ret

        // The three rows of a half and their stores.
.Llines:
        line    14, 15, 16, 17, 18, 19, 0, 1
        line    20, 21, 22, 23, 24, 25, 2, 3, 15, 18, 19, 0, 17, 16
        line    26, 27, 28, 29, 30, 31, 4, 5, 21, 24, 25, 2, 23, 22
        store   low, high, 27
        store   low, high, 30
        store   low, high, 31
        store   low, high, 4
        store   far_low, far_high, 29
        store   far_low, far_high, 28
        ret
endfunc n8_winograd_input_s8_neon
