// SPDX-License-Identifier: Apache-2.0
//
// The input of a tile of Winograd, 36 planes from 6x6 pixels                               (13)
//
//   void n8_winograd_input_s8_neon(int16_t *out, size_t plane, const int8_t *in, ptrdiff_t row,
//                                  ptrdiff_t pixel, size_t channels);
//
// Eight channels at a time. 36 vectors do not fit the registers, so two points of the vertical
// direction at a time are computed from all pixels, two that share terms: 1 and -1, then infinity
// and 0, then 2 and -2. The pixels of a column are loaded while the column before it is
// transformed; loads and stores move their pointers on.
//
//   q4-q9, q10-q15   a point of the vertical direction each, by columns
//
// Bounds: |pixel| <= 128, so |a column's value| <= 1280 and |a plane's value| <= 12800.
// Registers: below; q0 constants; q1-q3 pixels of columns 1, 3 and 5, later temporaries; q9 and q15
//   pixels of columns 0, 2 and 4, too.
// Stack: 100 bytes, what it preserves.
#include "asm.h"

        registers r, 0, out, plane, line0, row, line2, line3, line4, line5
        registers r, 8, pixel, back, onward, channels, low
        // back: from the last pixel of a line to the first; onward: the same, and eight channels on
far     .req lr
line1   .req r3                 // once row is no longer needed

        registers d, 0, less_five, less_four
        // less_five: outside of `lines`
#define four      d0[0]                         // in `lines`

// Pixels 1-4 of a column, from which it is \step to the next one.
.macro  inner   p1, p2, p3, p4, step=pixel
        vld1.8  {d\p2}, [line2], \step
        vld1.8  {d\p4}, [line4], \step
        vld1.8  {d\p1}, [line1], \step
        vld1.8  {d\p3}, [line3], \step
.endm

// Points 1 and -1 of a column.
.macro  ones    plus, minus, p1, p2, p3, p4
        vmull.s8 q\minus, d\p2, less_four
        vmull.s8 q3, d\p1, less_four
        vaddw.s8 q\minus, q\minus, d\p4
        vaddw.s8 q3, q3, d\p3
        vadd.i16 q\plus, q\minus, q3
        vsub.i16 q\minus, q\minus, q3
.endm

// Points 2 and -2.
.macro  twos    plus, minus, p1, p2, p3, p4
        vsubl.s8 q3, d\p3, d\p1
        vsubl.s8 q\minus, d\p4, d\p2
        vadd.i16 q3, q3, q3
        vadd.i16 q\plus, q\minus, q3
        vsub.i16 q\minus, q\minus, q3
.endm

// A pair of points of all columns; the last pixels are \step before the next ones.
.macro  columns points, step
        inner   18, 19, 30, 31
        inner   2, 3, 4, 5
        \points 4, 10, 18, 19, 30, 31
        inner   18, 19, 30, 31
        \points 5, 11, 2, 3, 4, 5
        inner   2, 3, 4, 5
        \points 6, 12, 18, 19, 30, 31
        inner   18, 19, 30, 31
        \points 7, 13, 2, 3, 4, 5
        inner   2, 3, 4, 5, \step
        \points 8, 14, 18, 19, 30, 31
        \points 9, 15, 2, 3, 4, 5
.endm

// Pixels 1, 3 and 5 of a column.
.macro  odd     step=pixel, outer=pixel
        vld1.8  {d2}, [line1], \step
        vld1.8  {d3}, [line3], \step
        vld1.8  {d4}, [line5], \outer
.endm

// The point infinity of a column, from d2-d4, while its pixels 0, 2 and 4 are loaded.
.macro  third   to, step=pixel, outer=pixel
        vld1.8  {d5}, [line0], \outer
        vmull.s8 q\to, d3, less_five
        vld1.8  {d6}, [line2], \step
        vmlsl.s8 q\to, d2, less_four
        vld1.8  {d7}, [line4], \step
        vaddw.s8 q\to, q\to, d4
.endm

// The point 0, from these.
.macro  fourth  to
        vmull.s8 q\to, d6, less_five
        vmlsl.s8 q\to, d5, less_four
        vaddw.s8 q\to, q\to, d7
.endm

.macro  store   to, value
    .ifnb \value
        vst1.16 {q\value}, [\to :128], plane
    .endif
.endm

// One line, and the store of another, whose points are in \p0-\p5. The points of this one are
// left in c1, c4, c5, t0, c3 and c2.
.macro  line    c0, c1, c2, c3, c4, c5, t0, t1, p0, p1, p2, p3, p4, p5
        vsub.i16 q\t0, q\c4, q\c2
        vsub.i16 q\t1, q\c3, q\c1
        store   low, \p0
        vsub.i16 q\c5, q\c5, q\c3
        vmls.i16 q\c4, q\c2, four
        store   low, \p1
        vmls.i16 q\c3, q\c1, four
        vsub.i16 q\c0, q\c0, q\c2
        store   low, \p2
        vadd.i16 q\c2, q\t1, q\t1
        vmls.i16 q\c5, q\t1, four
        store   low, \p3
        vadd.i16 q\c1, q\c4, q\c3
        vsub.i16 q\c4, q\c4, q\c3
        store   far, \p4
        vadd.i16 q\c3, q\t0, q\c2
        vsub.i16 q\c2, q\t0, q\c2
        store   far, \p5
        vmla.i16 q\t0, q\c0, four
.endm

// The two lines that columns left, and their stores.
.macro  lines
        vmov.i16 d0, #4
        line    4, 5, 6, 7, 8, 9, 1, 2
        line    10, 11, 12, 13, 14, 15, 3, 2, 5, 8, 9, 1, 7, 6
        store   low, 11
        store   low, 14
        store   low, 15
        store   low, 3
        store   far, 13
        store   far, 12
.endm

func    n8_winograd_input_s8_neon
        push_all
        ldr     pixel, [sp, #100]
        ldr     channels, [sp, #104]
        add     line2, line0, row, lsl #1
        add     line4, line0, row, lsl #2
        add     line3, line2, row
        add     line5, line4, row
        add     line1, line0, row
        add     back, pixel, pixel, lsl #2
        rsb     back, back, #0
        add     onward, back, #8
        vmov.i8 less_four, #256 - 4

1:      mov     low, out
        add     far, out, plane, lsl #4
        add     far, far, plane, lsl #3
        columns ones, back
        lines
        odd
        vmov.i8 less_five, #256 - 5
        third   4
        odd
        fourth  10
        third   5
        odd
        fourth  11
        third   6
        odd
        fourth  12
        third   7
        odd
        fourth  13
        third   8
        odd     back, onward
        fourth  14
        third   9, back, onward
        fourth  15
        lines
        columns twos, onward
        lines
        add     out, out, #16
        subs    channels, channels, #8
        bne     1b
        pop_all
endfunc n8_winograd_input_s8_neon
