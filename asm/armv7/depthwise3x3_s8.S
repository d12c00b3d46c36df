// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps and step = tap_stride, s1, or 2 * tap_stride, s2.
//
//   void n8_depthwise3x3s1_s8_neon(const struct n8_depthwise_args *args);
//   void n8_depthwise3x3s2_s8_neon(const struct n8_depthwise_args *args);
//
// Two neighbouring outputs, even and odd, of 8 channels are computed at a time. The 9 weights of
// these channels stay in registers for both rows of outputs. Two outputs need 4 inputs, with s2 5,
// of each of the 3 rows: top, mid and low. Those that the next two outputs need again stay in
// registers: columns 2 and 3 of s1 become 0 and 1, column 4 of s2 becomes 0.
//
//   s1   0 1 2 3    inputs           s2   0 1 2 3 4    inputs
//        +-+-+      even output           +-+-+        even output
//          +-+-+    odd output                +-+-+    odd output
//
// Where a row has an odd number of outputs, the first pair has only one of them, a lone output:
// with s1 the odd one, stored over the other; with s2 the even one, as the other sees column 2
// only, and is stored on the stack. So the columns are those that the next two outputs need. Inputs
// that are padding, or seen by no output of the row, are not loaded.
//
// Bounds: |input| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products
//   that share an int16 lane reach at most 32640; vaddw empties the lane before a third. int32 is
//   proved by (12). Values that are not small (kernel.h) go through n8_depthwise_round2.
// Registers: below. Stack: 136 bytes: what push_all preserves above what has no register.
#include "asm.h"

        registers r, 0, args, row0, row1, row2, tap_stride, beside, out, out_gap
        // beside: s2: tap_stride, or 0 for a lone output
        // out_gap: from the even output to the odd one
        registers r, 8, out_stride, left, facts, multiplier, temp
        // left: pairs of outputs after this one
bias    .req lr

#define AT_MAGIC   0
#define AT_CHANNEL 4
#define AT_WEIGHTS 8
#define AT_ROW     12                           // of outputs, 0 or 1
#define AT_AFTER   16                           // pairs after a lone output
#define AT_LONE    24                           // what is computed with it
#define LOCALS     36

        registers d, 0, w00, w01, w02, w10, w11, w12, w20, w21, w22
// s1: columns 0 and 1, and in their place 2 and 3.
        registers d, 9, top0, top1, mid0, mid1, low0, low1
        registers d, 9, top2, top3, mid2, mid3, low2, low3
// s2: column 0, and in its place 4; columns 1, 2 and 3 of a row after the other.
        registers d, 9, top_edge, mid_edge, low_edge, in1, in2, in3, qlo
// Products.
        registers q, 8, t0, t1, t2, t3
        registers d, 16, t0l, t0h, t1l, t1h, t2l, t2h, t3l, t3h
// Accumulators, channels 0-3 and 4-7.
        registers q, 10, scalel, scaleh, evenl, evenh, oddl, oddh
        // scalel: t2; scaleh: t3
magic   .req q8                 // t0

// The columns that a row begins with.
.macro  load_columns_s1
        ldr     temp, [args, #N8_OFF_DW_LEFT]
        and     left, left, #1
        adds    left, left, temp
        add     temp, args, #N8_OFF_DW_IN_ZERO_POINT
        bne     2f
        vld1.8  {top0}, [row0], tap_stride
        vld1.8  {mid0}, [row1], tap_stride
        vld1.8  {low0}, [row2], tap_stride
        b       3f
2:      vld1.8  {top0[]}, [temp]
        vld1.8  {mid0[]}, [temp]
        vld1.8  {low0[]}, [temp]
        cmp     left, #1
        beq     3f
        vld1.8  {top1[]}, [temp]
        vld1.8  {mid1[]}, [temp]
        vld1.8  {low1[]}, [temp]
        b       4f
3:      vld1.8  {top1}, [row0], tap_stride
        vld1.8  {mid1}, [row1], tap_stride
        vld1.8  {low1}, [row2], tap_stride
4:      ldr     left, [args, #N8_OFF_DW_PIXELS]
.endm

.macro  load_columns_s2
        ldr     temp, [args, #N8_OFF_DW_LEFT]
        cmp     temp, #0
        bne     2f
        vld1.8  {top_edge}, [row0], tap_stride
        vld1.8  {mid_edge}, [row1], tap_stride
        vld1.8  {low_edge}, [row2], tap_stride
        b       3f
2:      add     temp, args, #N8_OFF_DW_IN_ZERO_POINT
        vld1.8  {top_edge[]}, [temp]
        vld1.8  {mid_edge[]}, [temp]
        vld1.8  {low_edge[]}, [temp]
3:
.endm

// Where the other output goes that is computed with a lone one.
.macro  lone_s1
        mov     out_gap, #0
.endm

.macro  lone_s2
        mov     beside, #0
        add     temp, sp, #AT_LONE
        sub     out_gap, temp, out
.endm

// The first products of two outputs.
.macro  first_products stride
    .if \stride == 1
        vmull.s8 t1, top1, w00
        vmull.s8 t2, mid0, w10
        vmull.s8 t3, mid1, w10
        vmull.s8 t0, top0, w00
    .else
        vmull.s8 t2, mid_edge, w10
        vmull.s8 t0, top_edge, w00
    .endif
.endm

// Products to their accumulators.
.macro  add_products low, high, product_low, product_high
        vaddw.s16 \low, \low, \product_low
        vaddw.s16 \high, \high, \product_high
.endm

// The accumulators of two outputs, of the even one from t0 and t2, of the odd one from t1 and t3;
// then the multipliers and the magic number are loaded. A column takes over a register as soon as
// the last product with what was there is under way. padded: column 3 is.
.macro  accumulate_s1 padded
        vmlal.s8 t2, mid1, w11
        vld1.32 {d28-d31}, [bias:128]
        vmlal.s8 t0, top1, w01
        vld1.8  {mid2}, [row1], tap_stride
        vmlal.s8 t1, low1, w20
        vld1.8  {top2}, [row0], tap_stride
        vaddw.s16 evenl, oddl, t2l
        vaddw.s16 evenh, oddh, t2h
        load_last top3, row0, \padded
        vmull.s8 t2, low0, w20
        add_products oddl, oddh, t1l, t1h
        load_last mid3, row1, \padded
        vmlal.s8 t3, top2, w01
        add_products evenl, evenh, t0l, t0h
        vmlal.s8 t2, low1, w21
        vmull.s8 t1, top3, w02
        vld1.8  {low2}, [row2], tap_stride
        vmull.s8 t0, top2, w02
        add_products oddl, oddh, t3l, t3h
        vmlal.s8 t1, mid2, w11
        load_last low3, row2, \padded
        vmlal.s8 t0, mid2, w12
        add_products evenl, evenh, t2l, t2h
        vmull.s8 t3, mid3, w12
        vmull.s8 t2, low2, w22
        add_products oddl, oddh, t1l, t1h
        vmlal.s8 t3, low2, w21
        vmull.s8 t1, low3, w22
        add_products evenl, evenh, t0l, t0h
        vld1.32 {d16[], d17[]}, [sp]
        add_products oddl, oddh, t3l, t3h
        add_products evenl, evenh, t2l, t2h
        vld1.32 {d20-d23}, [multiplier:128]
        add_products oddl, oddh, t1l, t1h
.endm

.macro  load_last column, row, padded
    .if \padded
        vld1.8  {\column[]}, [temp]
    .else
        vld1.8  {\column}, [\row], tap_stride
    .endif
.endm

.macro  accumulate_s2
        vld1.8  {in1}, [row0], tap_stride
        vld1.8  {in2}, [row0], beside
        vld1.8  {in3}, [row0], beside
        vmlal.s8 t0, in1, w01
        vld1.8  {top_edge}, [row0], tap_stride
        vmull.s8 t1, in2, w00
        vld1.8  {in1}, [row1], tap_stride
        vmlal.s8 t2, in2, w02
        vld1.8  {in2}, [row1], beside
        vmull.s8 t3, top_edge, w02
        vld1.32 {d28-d31}, [bias:128]
        vmlal.s8 t1, in3, w01
        vld1.8  {in3}, [row1], beside
        vaddw.s16 evenl, oddl, t0l
        vaddw.s16 evenh, oddh, t0h
        vmull.s8 t0, in1, w11
        vld1.8  {mid_edge}, [row1], tap_stride
        vmlal.s8 t3, in2, w10
        vld1.8  {in1}, [row2], tap_stride
        add_products evenl, evenh, t2l, t2h
        vmlal.s8 t0, in2, w12
        vmull.s8 t2, low_edge, w20
        vld1.8  {in2}, [row2], beside
        add_products oddl, oddh, t1l, t1h
        vmull.s8 t1, in3, w11
        vld1.8  {in3}, [row2], beside
        add_products oddl, oddh, t3l, t3h
        vmlal.s8 t2, in1, w21
        vld1.8  {low_edge}, [row2], tap_stride
        vmlal.s8 t1, mid_edge, w12
        add_products evenl, evenh, t0l, t0h
        vmull.s8 t3, in2, w20
        vmull.s8 t0, in2, w22
        add_products evenl, evenh, t2l, t2h
        vmlal.s8 t3, in3, w21
        add_products oddl, oddh, t1l, t1h
        vmull.s8 t1, low_edge, w22
        add_products evenl, evenh, t0l, t0h
        vld1.32 {d16[], d17[]}, [sp]
        add_products oddl, oddh, t3l, t3h
        vld1.32 {d20-d23}, [multiplier:128]
        add_products oddl, oddh, t1l, t1h
.endm

// Two outputs to int16 in evenl and oddl (5), while the first products of the next two begin: of t1
// and t2 once the multipliers are no longer needed, of t0 once the magic number is not.
.macro  scale_pair stride
        to_float evenl, evenh, oddl, oddh
        each2   vmul.f32, scalel, scaleh, evenl, evenh, oddl, oddh
        each    vadd.f32, magic, evenl, evenh
    .if \stride == 1
        vmull.s8 t1, top1, w00
        each    vadd.f32, magic, oddl, oddh
        vmull.s8 t2, mid0, w10
        vuzp.16 evenl, evenh
        vmull.s8 t3, mid1, w10
    .else
        each    vadd.f32, magic, oddl, oddh
        vmull.s8 t2, mid_edge, w10
        vuzp.16 evenl, evenh
    .endif
        vuzp.16 oddl, oddh
        vmull.s8 t0, top0, w00                  // the same register as top_edge
.endm

.macro  depthwise3x3 name, stride
func    n8_\name
        push_all LOCALS
        find_facts facts, r1, temp
        ldr     tap_stride, [args, #N8_OFF_DW_TAP_STRIDE]
        ldr     out_stride, [args, #N8_OFF_DW_OUT_STRIDE]
        ldr     multiplier, [args, #N8_OFF_DW_MULTIPLIER]
        add     temp, args, #N8_OFF_DW_LO
        vld1.8  {qlo[]}, [temp]                 // the low byte is the int8 value
        str     r1, [sp, #AT_MAGIC]
        ldr     temp, [args, #N8_OFF_DW_WEIGHTS]
        mov     r1, #0

        // 8 channels.
.Lchannels\@:
        vld1.8  {d0-d3}, [temp:64]!
        str     r1, [sp, #AT_CHANNEL]
        vld1.8  {d4-d7}, [temp:64]!
        mov     left, #0
        vld1.8  {d8}, [temp:64]!
        str     temp, [sp, #AT_WEIGHTS]

        // A row of their outputs.
.Lrow\@:
        ldr     temp, [args, #N8_OFF_DW_ROWS]
        cmp     left, #0
        ldr     out, [args, #N8_OFF_DW_OUT]
        addne   temp, temp, #4 * \stride
        ldr     out_gap, [args, #N8_OFF_DW_OUT_ROW_STRIDE]
        ldr     bias, [sp, #AT_CHANNEL]
        addne   out, out, out_gap
        ldm     temp, {row0, row1, row2}
        str     left, [sp, #AT_ROW]
        ldr     temp, [args, #N8_OFF_DW_BIAS]
        ldr     left, [args, #N8_OFF_DW_PIXELS]
        add     out, out, bias
        each    add, bias, row0, row1, row2
        add     bias, temp, bias, lsl #2
        mov     beside, tap_stride
        mov     out_gap, out_stride
        load_columns_s\stride
        movs    left, left, lsr #1
        mov     temp, #0
        subcc   left, left, #1
        movcs   temp, left
        str     temp, [sp, #AT_AFTER]
        bcc     1f
        mov     left, #0
        lone_s\stride
1:      first_products \stride
    .if \stride == 1
        cmp     left, #0
        beq     .Llast\@
.Lpair\@:
        accumulate_s1 padded=0
    .else
.Lpair\@:
.Llast\@:
        accumulate_s2
    .endif

.Lround\@:
        cmp     facts, #0
        bne     .Lcareful\@
        scale_pair \stride
        vqmovn.s16 d24, evenl
        vqmovn.s16 d25, oddl
.Llow\@:
        each    vmax.s8, qlo, d24, d25
.Lstore\@:
        vst1.8  {d24}, [out], out_gap
        subs    left, left, #1
        vst1.8  {d25}, [out], out_stride
        bhi     .Lpair\@
        beq     .Llast\@

        // After a lone output, whose place is out_gap before that of the other.
        ldr     left, [sp, #AT_AFTER]
        mov     temp, #0
        subs    left, left, #1
        blo     .Lnext\@
        str     temp, [sp, #AT_AFTER]
        sub     out, out, out_gap
        mov     out_gap, out_stride
        mov     beside, tap_stride
        bhi     .Lpair\@
        b       .Llast\@

.Lnext\@:
        ldr     left, [sp, #AT_ROW]
        ldr     r1, [args, #N8_OFF_DW_OUT_ROW_STRIDE]
        eors    left, left, #1
        cmpne   r1, #0
        bne     .Lrow\@
        ldr     r1, [sp, #AT_CHANNEL]
        ldr     r2, [args, #N8_OFF_DW_CHANNELS]
        ldr     temp, [sp, #AT_WEIGHTS]
        add     r1, r1, #8
        add     multiplier, multiplier, #32
        cmp     r1, r2
        blo     .Lchannels\@
        pop_all LOCALS

        // An odd zero point, or an upper limit; its low byte is the int8 value.
.Lcareful\@:
        bmi     .Lany\@
        scale_pair \stride
        and     temp, facts, #1
        vdup.16 q13, temp
        add     temp, args, #N8_OFF_DW_HI
        each    vadd.i16, q13, evenl, oddl
        vld1.8  {d30[], d31[]}, [temp]
        vqmovn.s16 d24, evenl
        vqmovn.s16 d25, oddl
        vmin.s8 q12, q12, q15
        b       .Llow\@

.Lany\@:
        ldr     temp, [sp, #AT_CHANNEL]
        bl      n8_depthwise_round2
        ldr     temp, [sp, #AT_CHANNEL]
        ldr     bias, [args, #N8_OFF_DW_BIAS]
        add     bias, bias, temp, lsl #2
        first_products \stride
        b       .Lstore\@

    .if \stride == 1
        // The last pair may be padded, unless it is a lone output that pairs follow.
.Llast\@:
        ldr     temp, [sp, #AT_AFTER]
        cmp     temp, #0
        ldr     temp, [args, #N8_OFF_DW_RIGHT]
        cmpeq   temp, #1
        bne     .Lpair\@
        add     temp, args, #N8_OFF_DW_IN_ZERO_POINT
        accumulate_s1 padded=1
        b       .Lround\@
    .endif
endfunc n8_\name
.endm

depthwise3x3 depthwise3x3s1_s8_neon, 1
depthwise3x3 depthwise3x3s2_s8_neon, 2
