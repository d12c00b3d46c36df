// SPDX-License-Identifier: Apache-2.0
//
// sums[p][c] = bias[c] + sum over y, x of in[y][p * step + x * tap_stride + c] * w[y][x][c]
//
//   void n8_depthwise_s16_s32_neon(const struct n8_depthwise_s16_args *args);
//
// Outputs are computed in the groups of few_outputs in asm.h; the pointer to their inputs goes by
// `back` from the last output to the next tap of the first.
//
//                  q0              weights of a tap
//   in             q8 .. q15       accumulators, two registers for each output
//   q1 q2 q3 q4
//
// Bounds: accumulators wrap.
// Registers: below. Stack: 120 bytes: what push_all preserves above what has no register.
#include "asm.h"

        registers r, 0, args, in, apart, middle, back, w, left, width
        // left: taps of this row
        registers r, 8, row, rows_left, at, channel, temp
        // at: of the first output in its row, in bytes

#define AT_APART        0                       // of outputs where they are stored
#define AT_MIDDLE       4
#define AT_FIRST        8                       // output of the group
#define AT_WEIGHTS      12
#define LOCALS          20

func    n8_depthwise_s16_s32_neon
        push_all LOCALS

        ldr     temp, [args, #N8_OFF_DS_PIXELS]
        ldr     apart, [args, #N8_OFF_DS_STEP]
        ldr     r5, [args, #N8_OFF_DS_CHANNELS]
        mov     middle, apart
        mov     r5, r5, lsl #2
        mov     r6, r5
        few_outputs temp, apart, middle, r5, r6
        str     r5, [sp, #AT_APART]
        str     r6, [sp, #AT_MIDDLE]
        ldr     back, [args, #N8_OFF_DS_TAP_STRIDE]
        ldr     width, [args, #N8_OFF_DS_KERNEL_WIDTH]
        sub     back, back, middle
        sub     back, back, apart, lsl #1
        ldr     temp, [args, #N8_OFF_DS_WEIGHTS]
        mov     channel, #0

        // 8 channels, then a group, a row of its taps, and a tap.
1:      str     temp, [sp, #AT_WEIGHTS]
        mov     temp, #0
2:      str     temp, [sp, #AT_FIRST]
        ldr     r5, [args, #N8_OFF_DS_STEP]
        ldr     r6, [args, #N8_OFF_DS_BIAS]
        mul     at, temp, r5
        add     r6, r6, channel, lsl #2
        add     at, at, channel, lsl #1
        vld1.32 {d16-d19}, [r6:128]
        ldr     row, [args, #N8_OFF_DS_ROWS]
        ldr     rows_left, [args, #N8_OFF_DS_KERNEL_HEIGHT]
        ldr     w, [sp, #AT_WEIGHTS]
        fill    vmov, q8, q10, q12, q14
        fill    vmov, q9, q11, q13, q15

3:      ldr     in, [row], #4
        mov     left, width
        add     in, in, at
4:      vld1.16 {d0-d1}, [w:128]!
        vld1.16 {d2-d3}, [in], apart
        vld1.16 {d4-d5}, [in], middle
        vmlal.s16 q8, d0, d2
        vld1.16 {d6-d7}, [in], apart
        vmlal.s16 q9, d1, d3
        vld1.16 {d8-d9}, [in], back
        vmlal.s16 q10, d0, d4
        vmlal.s16 q11, d1, d5
        vmlal.s16 q12, d0, d6
        vmlal.s16 q13, d1, d7
        subs    left, left, #1
        vmlal.s16 q14, d0, d8
        vmlal.s16 q15, d1, d9
        bne     4b
        subs    rows_left, rows_left, #1
        bne     3b

        ldr     temp, [sp, #AT_FIRST]
        ldr     r6, [args, #N8_OFF_DS_CHANNELS]
        ldr     r8, [args, #N8_OFF_DS_SUMS]
        mla     r6, r6, temp, channel
        ldr     r9, [sp, #AT_APART]
        ldr     r10, [sp, #AT_MIDDLE]
        add     r8, r8, r6, lsl #2
        vst1.32 {d16-d19}, [r8:128], r9
        vst1.32 {d20-d23}, [r8:128], r10
        vst1.32 {d24-d27}, [r8:128], r9
        vst1.32 {d28-d31}, [r8:128]
        ldr     r6, [args, #N8_OFF_DS_PIXELS]
        add     temp, temp, #4
        cmp     temp, r6
        bhs     5f
        sub     r6, r6, #4
        cmp     temp, r6
        movhi   temp, r6
        b       2b

5:      ldr     r6, [args, #N8_OFF_DS_CHANNELS]
        mov     temp, w
        add     channel, channel, #8
        cmp     channel, r6
        blo     1b
        pop_all LOCALS
endfunc n8_depthwise_s16_s32_neon
