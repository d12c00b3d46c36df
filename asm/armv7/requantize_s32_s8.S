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
// Registers: below; q0-q3 as round16 wants them, q8-q11 values, q12-q15 multipliers.
// Stack: 32 bytes, what it preserves.
#include "asm.h"

        registers r, 0, out, in, pixels, channels, multiplier, stride, from, to
        // stride: bytes from sums to sums
        registers r, 8, rows, left, back
        // rows: pixels left; left: channels; back: from the middle of sums to the next ones
ptr     .req r6

        // The next channels, of all pixels.
.macro  begin_channels
        mov     from, in
        mov     to, out
        mov     rows, pixels
.endm

        // The channels in q8, of which \count are stored as \results.
.macro  columns count, values, multipliers, results
        vld1.32 {\multipliers}, [multiplier]!
        begin_channels
7:      vld1.32 {\values}, [from], stride
        to_float q8
        vmul.f32 q8, q8, q12
        round   q3, q8
        vqmovn.s32 d16, q8
        vqadd.s16 d16, d16, d0
        vqmovn.s16 d16, q8
        vmax.s8 d16, d16, d2
        vmin.s8 d16, d16, d4
        subs    rows, rows, #1
        \results, [to], channels
        bne     7b
        add     in, in, #4*\count
        add     out, out, #\count
.endm

func    n8_requantize_s32_s8_neon
        save    r4, r5, r6, r7, r8, r9, r10, lr
        cmp     pixels, #0
        beq     9f
        ldr     multiplier, [sp, #32]
        add     ptr, sp, #36
        vld1.16 {d0[], d1[]}, [ptr]
        add     ptr, sp, #40
        vld1.8  {d2[], d3[]}, [ptr]
        add     ptr, sp, #44
        vld1.8  {d4[], d5[]}, [ptr]
        set_rounding
        lsl     stride, channels, #2
        sub     back, stride, #32
        subs    left, channels, #16
        blo     3f
1:      vld1.32 {d24-d27}, [multiplier]!
        vld1.32 {d28-d31}, [multiplier]!
        begin_channels
2:      vld1.32 {d16-d19}, [from]!
        vld1.32 {d20-d23}, [from], back
        to_float q8, q9, q10, q11
        vmul.f32 q8, q8, q12
        vmul.f32 q9, q9, q13
        vmul.f32 q10, q10, q14
        vmul.f32 q11, q11, q15
        round16
        subs    rows, rows, #1
        vst1.8  {d16-d17}, [to], channels
        bne     2b
        add     in, in, #64
        add     out, out, #16
        subs    left, left, #16
        bhs     1b

3:      adds    left, left, #12
        bmi     5f
4:      columns 4, d16-d17, d24-d25, "vst1.32 {d16[0]}"
        subs    left, left, #4
        bpl     4b
5:      ands    left, channels, #3
        beq     9f
6:      columns 1, d16[0], d24[0], "vst1.8 {d16[0]}"
        subs    left, left, #1
        bne     6b
9:      restore r4, r5, r6, r7, r8, r9, r10, lr
        bx      lr
endfunc n8_requantize_s32_s8_neon
