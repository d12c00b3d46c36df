// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for any number of taps.
//
//   void n8_depthwise_s8_neon(const struct n8_depthwise_args *args);
//
// Outputs are computed in the groups of few_outputs in asm.h. Taps are taken in pairs, whose
// products share an int16 lane: one below the other in two rows, side by side in the first of an
// odd number of rows, where an odd first tap stands alone. So a pointer for each tap of a pair
// serves all rows:
//
//   a b b c c      width 5, height 3
//   d e f g h
//   d e f g h
//
// The products of a pair are added to the accumulators while the inputs of the next one are loaded.
// A pointer goes by `back` from the last output of a group to the next tap of the first.
//
// Bounds: |input| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products
//   that share an int16 lane reach at most 32640. int32 is proved by (12).
// Registers: below. Stack: 144 bytes: what push_all preserves above what has no register.
#include "asm.h"

        registers r, 0, args, first_in, second_in, apart, middle, back, first_w, second_w
        // first_in: pointers to the inputs of a pair; first_w: to its weights
        registers r, 8, next_w, left, next_row, column, temp
        // next_w: bytes from a pair's to the next one's; left: pairs of these rows
        // column: of the first output, with the channel
more    .req lr                 // two rows of taps each

#define AT_MAGIC        0
#define AT_FACTS        4
#define AT_CHANNEL      8
#define AT_WEIGHTS      12                      // of these channels
#define AT_FIRST        16                      // output of the group
#define AT_BACK         20
#define AT_APART        24                      // of outputs where they are stored
#define AT_MIDDLE       28
#define AT_ROW_BYTES    32                      // of weights
#define AT_OUT          36
#define LOCALS          44

// Inputs and weights of a pair.
        registers d, 0, one0, one1, one2, one3, one_w, two_w, two0, two1
        registers d, 8, t0l, t0h, t1l, t1h, t2l, t2h, t3l, t3h
        registers q, 0, scalel, scaleh, magic, qlo, t0, t1, t2, t3
        registers q, 8, acc0l, acc0h, acc1l, acc1h, acc2l, acc2h, acc3l, acc3h
        registers d, 0, two2, two3
// of all four outputs, when they have 8 bits
        registers q, 8, out01, out23

// In n8_depthwise_round2:
slope   .req r1
channel .req r12

// Two outputs, of two registers of four channels each, to 8 int16 in `el` and in `ol` (5).
.macro  scale_pair el, eh, ol, oh
        to_float \el, \eh, \ol, \oh
        each2   vmul.f32, scalel, scaleh, \el, \eh, \ol, \oh
        each    vadd.f32, magic, \el, \eh, \ol, \oh
        vuzp.16 \el, \eh
        vuzp.16 \ol, \oh
.endm

// Times its slope where it is negative; 0 for NaN, which is infinity times 0.
.macro  leaky_number v, slopes
        leaky   \slopes, q8, q9, \v
        number  q9, \v
.endm

// What all depthwise kernels of int8 call for the few layers whose values are not small (kernel.h):
// requantizes two outputs of 8 channels, q12-q13 and q14-q15, whatever their values, to d24 and
// d25; r12 is the first channel. q8-q15, r12 and the flags change.
//
// Bounds: as in round16 of asm.h. Stack: 8 bytes, what it preserves.
func    n8_depthwise_round2
        save    r1, r2
        ldr     r2, [args, #N8_OFF_DW_MULTIPLIER]
        ldr     slope, [args, #N8_OFF_DW_SLOPE]
        add     r2, r2, channel, lsl #2
        vld1.32 {d16-d19}, [r2:128]
        to_float q12, q13, q14, q15
        each2   vmul.f32, q8, q9, q12, q13, q14, q15
        cmp     slope, #0
        beq     1f
        add     slope, slope, channel, lsl #2
        vld1.32 {d20-d23}, [slope:128]
        leaky_number q12, q10
        leaky_number q13, q11
        leaky_number q14, q10
        leaky_number q15, q11
1:      set_rounding q8
        round   q8, q12, q13, q14, q15

        // The low bytes of int32 fields are the int16 and int8 values.
        add     temp, args, #N8_OFF_DW_ZERO_POINT
        vld1.16 {d16[], d17[]}, [temp]
        vqmovn.s32 d24, q12
        vqmovn.s32 d25, q13
        vqmovn.s32 d26, q14
        vqmovn.s32 d27, q15
        each    vqadd.s16, q8, q12, q13
        add     temp, args, #N8_OFF_DW_LO
        vld1.8  {d16[], d17[]}, [temp]
        add     temp, args, #N8_OFF_DW_HI
        vld1.8  {d18[], d19[]}, [temp]
        vqmovn.s16 d24, q12
        vqmovn.s16 d25, q13
        vmax.s8 q12, q12, q8
        vmin.s8 q12, q12, q9
        restore r1, r2
        bx      lr
endfunc n8_depthwise_round2

func    n8_depthwise_s8_neon
        push_all LOCALS
        find_facts r1, r2, temp
        str     r2, [sp, #AT_MAGIC]
        str     r1, [sp, #AT_FACTS]

        ldr     temp, [args, #N8_OFF_DW_PIXELS]
        ldr     apart, [args, #N8_OFF_DW_STEP]
        ldr     r1, [args, #N8_OFF_DW_OUT_STRIDE]
        mov     middle, apart
        mov     r2, r1
        few_outputs temp, apart, middle, r1, r2
        str     r1, [sp, #AT_APART]
        str     r2, [sp, #AT_MIDDLE]
        ldr     temp, [args, #N8_OFF_DW_TAP_STRIDE]
        sub     temp, temp, middle
        sub     temp, temp, apart, lsl #1
        str     temp, [sp, #AT_BACK]
        ldr     temp, [args, #N8_OFF_DW_KERNEL_WIDTH]
        mov     temp, temp, lsl #3
        str     temp, [sp, #AT_ROW_BYTES]
        ldr     r1, [args, #N8_OFF_DW_WEIGHTS]
        mov     r2, #0

.Lchannels:
        str     r1, [sp, #AT_WEIGHTS]
        str     r2, [sp, #AT_CHANNEL]
        mov     temp, #0
.Lgroup:
        str     temp, [sp, #AT_FIRST]
        ldr     r9, [args, #N8_OFF_DW_STEP]
        ldr     r10, [sp, #AT_CHANNEL]
        ldr     r5, [args, #N8_OFF_DW_OUT]
        ldr     r7, [args, #N8_OFF_DW_OUT_STRIDE]
        mla     column, temp, r9, r10
        mla     r5, temp, r7, r5
        ldr     r8, [args, #N8_OFF_DW_BIAS]
        add     r5, r5, r10
        add     r8, r8, r10, lsl #2
        str     r5, [sp, #AT_OUT]
        vld1.32 {d16-d19}, [r8:128]
        ldr     more, [args, #N8_OFF_DW_KERNEL_HEIGHT]
        vld1.32 {d20-d23}, [r8:128]
        ldr     left, [args, #N8_OFF_DW_KERNEL_WIDTH]
        vld1.32 {d24-d27}, [r8:128]
        ldr     next_row, [args, #N8_OFF_DW_ROWS]
        vld1.32 {d28-d31}, [r8:128]
        ldr     second_w, [sp, #AT_WEIGHTS]
        movs    more, more, lsr #1
        ldr     back, [sp, #AT_BACK]
        bcc     .Leven

        // A row alone: its pairs begin at the second pointer, which so ends with the row.
        ldr     second_in, [next_row], #4
        movs    left, left, lsr #1
        add     second_in, second_in, column
        bcc     1f
        vld1.8  {one_w}, [second_w:64]!
        vld1.8  {one0}, [second_in], apart
        vld1.8  {one1}, [second_in], middle
        vld1.8  {one2}, [second_in], apart
        vld1.8  {one3}, [second_in], back
        vmull.s8 t0, one0, one_w
        vmull.s8 t1, one1, one_w
        vmull.s8 t2, one2, one_w
        vmull.s8 t3, one3, one_w
        cmp     left, #0
        beq     .Lnext_rows
        b       2f
1:      fill    vmov.i8, #0, t0, t1, t2, t3
2:      ldr     temp, [args, #N8_OFF_DW_TAP_STRIDE]
        add     first_w, second_w, #8
        mov     next_w, #16
        add     first_in, second_in, temp
        add     back, back, temp
        b       .Lpair

.Leven:
        fill    vmov.i8, #0, t0, t1, t2, t3
.Lnext_rows:
        subs    more, more, #1
        blo     .Lscale
.Lrows:
        ldr     first_in, [next_row], #4
        ldr     temp, [sp, #AT_ROW_BYTES]
        ldr     second_in, [next_row], #4
        mov     first_w, second_w
        ldr     back, [sp, #AT_BACK]
        add     second_w, second_w, temp
        add     first_in, first_in, column
        add     second_in, second_in, column
        mov     left, temp, lsr #3
        mov     next_w, #8

.Lpair:
        vld1.8  {one_w}, [first_w:64], next_w
        vaddw.s16 acc0l, acc0l, t0l
        vld1.8  {one0}, [first_in], apart
        vaddw.s16 acc0h, acc0h, t0h
        vld1.8  {one1}, [first_in], middle
        vaddw.s16 acc1l, acc1l, t1l
        vld1.8  {one2}, [first_in], apart
        vaddw.s16 acc1h, acc1h, t1h
        vld1.8  {one3}, [first_in], back
        vmull.s8 t0, one0, one_w
        vld1.8  {two_w}, [second_w:64], next_w
        vmull.s8 t1, one1, one_w
        vld1.8  {two0}, [second_in], apart
        vaddw.s16 acc2l, acc2l, t2l
        vld1.8  {two1}, [second_in], middle
        vaddw.s16 acc2h, acc2h, t2h
        vld1.8  {two2}, [second_in], apart
        vaddw.s16 acc3l, acc3l, t3l
        vld1.8  {two3}, [second_in], back
        vaddw.s16 acc3h, acc3h, t3h
        vmull.s8 t2, one2, one_w
        vmull.s8 t3, one3, one_w
        vmlal.s8 t0, two0, two_w
        subs    left, left, #1
        vmlal.s8 t1, two1, two_w
        vmlal.s8 t2, two2, two_w
        vmlal.s8 t3, two3, two_w
        bne     .Lpair
        subs    more, more, #1
        bhs     .Lrows

.Lscale:
        ldr     temp, [args, #N8_OFF_DW_MULTIPLIER]
        ldr     r1, [sp, #AT_CHANNEL]
        vaddw.s16 acc0l, acc0l, t0l
        vaddw.s16 acc0h, acc0h, t0h
        add     temp, temp, r1, lsl #2
        vaddw.s16 acc1l, acc1l, t1l
        vld1.32 {d0-d3}, [temp:128]
        vaddw.s16 acc1h, acc1h, t1h
        ldr     r2, [sp, #AT_FACTS]
        vaddw.s16 acc2l, acc2l, t2l
        vld1.32 {d4[], d5[]}, [sp]
        vaddw.s16 acc2h, acc2h, t2h
        ldr     r9, [sp, #AT_OUT]
        vaddw.s16 acc3l, acc3l, t3l
        ldr     r10, [sp, #AT_APART]
        vaddw.s16 acc3h, acc3h, t3h
        // The low bytes of the int32 limits are the int8 limits.
        add     temp, args, #N8_OFF_DW_LO
        vld1.8  {d6[], d7[]}, [temp]
        // Flags that stay as they are: carry, values are not small; ne, something remains to be
        // done.
        lsls    temp, r2, #1
        ldr     r11, [sp, #AT_MIDDLE]
        bcs     .Lany
        scale_pair acc0l, acc0h, acc1l, acc1h
        scale_pair acc2l, acc2h, acc3l, acc3h
        bne     .Ladjust
.Lnarrow:
        vqmovn.s16 d16, acc0l
        vqmovn.s16 d17, acc1l
        vqmovn.s16 d18, acc2l
        vqmovn.s16 d19, acc3l
        bne     .Lhigh
.Llow:
        each    vmax.s8, qlo, out01, out23
.Lstore:
        vst1.8  {d16}, [r9], r10
        ldr     temp, [sp, #AT_FIRST]
        ldr     r2, [args, #N8_OFF_DW_PIXELS]
        vst1.8  {d17}, [r9], r11
        add     temp, temp, #4
        vst1.8  {d18}, [r9], r10
        cmp     temp, r2
        vst1.8  {d19}, [r9]
        bhs     .Lnext
        sub     r2, r2, #4
        cmp     temp, r2
        movhi   temp, r2
        b       .Lgroup

.Lnext:
        ldr     r2, [sp, #AT_CHANNEL]
        ldr     temp, [args, #N8_OFF_DW_CHANNELS]
        mov     r1, second_w
        add     r2, r2, #8
        cmp     r2, temp
        blo     .Lchannels
        pop_all LOCALS

        // An odd zero point, which leaves the flags as they are, and an upper limit.
.Ladjust:
        and     temp, r2, #1
        vdup.16 q0, temp
        each    vadd.i16, q0, acc0l, acc1l, acc2l, acc3l
        b       .Lnarrow
.Lhigh:
        add     temp, args, #N8_OFF_DW_HI
        vld1.8  {d0[], d1[]}, [temp]
        each    vmin.s8, q0, out01, out23
        b       .Llow

.Lany:
        vmov    q4, acc0l
        vmov    q5, acc0h
        vmov    q6, acc1l
        vmov    q7, acc1h
        ldr     temp, [sp, #AT_CHANNEL]
        bl      n8_depthwise_round2
        vmov    q0, q12
        vmov    q12, q4
        vmov    q13, q5
        vmov    q14, q6
        vmov    q15, q7
        ldr     temp, [sp, #AT_CHANNEL]
        bl      n8_depthwise_round2
        vmov    out01, q12
        vmov    out23, q0
        b       .Lstore
endfunc n8_depthwise_s8_neon
