// SPDX-License-Identifier: Apache-2.0
//
// out[p][c] = clamp(rne(fmul((float) in[p][c], multiplier[c])) + zero_point, lo, hi)     (5)
//
//   void n8_requantize_s32_s8_neon(int8_t *out, const int32_t *in, size_t pixels,
//                                  size_t channels, const float *multiplier,
//                                  int32_t zero_point, int32_t lo, int32_t hi);
//
// Sixteen channels of all pixels, then four and four, then single ones: multipliers stay in
// registers.
//
// Bounds: int32 to float rounds half to even (7); round16 of asm.h. Reads and writes exactly the
//   values that there are.
// Registers: x0-x4, w5-w7 the arguments; x8 bytes of a pixel's sums, x9 channels left, x10 sums and
//   x11 bytes of a pixel, x12 pixels left; v0 zero point, v1 lo, v2 hi, v16-v19 values, v20-v23
//   multipliers.
// Stack: none.
#include "asm.h"

        registers x, 0, out, in, pixels, channels, multiplier
        registers x, 8, stride, left, from, to, rows

        // \count channels of all pixels, in registers and lanes as wide as they are.
.macro  columns count, values, multipliers, results
        ldr     \multipliers, [multiplier], #4*\count
        mov     from, in
        mov     to, out
        mov     rows, pixels
7:      ldr     \values, [from]
        add     from, from, stride
        scvtf   v16.4s, v16.4s
        fmul    v16.4s, v16.4s, v20.4s
        fcvtns  v16.4s, v16.4s
        sqxtn   v16.4h, v16.4s
        sqadd   v16.4h, v16.4h, v0.4h
        sqxtn   v16.8b, v16.8h
        smax    v16.8b, v16.8b, v1.8b
        smin    v16.8b, v16.8b, v2.8b
        subs    rows, rows, #1
        str     \results, [to]
        add     to, to, channels
        b.ne    7b
        add     in, in, #4*\count
        add     out, out, #\count
.endm

func    n8_requantize_s32_s8_neon
        cbz     pixels, 6f
        dup     v0.8h, w5
        dup     v1.16b, w6
        dup     v2.16b, w7
        lsl     stride, channels, #2
        subs    left, channels, #16
        b.lo    3f
1:      ldp     q20, q21, [multiplier], #32
        ldp     q22, q23, [multiplier], #32
        mov     from, in
        mov     to, out
        mov     rows, pixels
2:      ldp     q16, q17, [from]
        ldp     q18, q19, [from, #32]
        add     from, from, stride
        in_place scvtf, v16.4s, v17.4s, v18.4s, v19.4s
        on16    fmul, v20.4s, v21.4s, v22.4s, v23.4s
        round16 v16, v17, v18, v19, v0, v1, v2
        subs    rows, rows, #1
        str     q16, [to]
        add     to, to, channels
        b.ne    2b
        add     in, in, #64
        add     out, out, #16
        subs    left, left, #16
        b.hs    1b

3:      adds    left, left, #12
        b.mi    5f
4:      columns 4, q16, q20, s16
        subs    left, left, #4
        b.pl    4b
5:      ands    left, channels, #3
        b.eq    6f
8:      columns 1, s16, s20, b16
        subs    left, left, #1
        b.ne    8b
6:      ret
endfunc n8_requantize_s32_s8_neon
