// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps and step = tap_stride.
//
//   void n8_depthwise3x3s1_s8_neon(const struct n8_depthwise_args *args);
//
// Two outputs need 4 inputs of each of the 3 rows, top, mid, low, of which the first two are those
// that the outputs before them had last:
//
//   0 1 2 3    inputs
//   +-+-+      even output
//     +-+-+    odd output
//
// Bounds, registers, stack: depthwise3x3_s8.inc. The layout of all arrays: runtime/kernel.h. conv.c,
// conv_prove.c and conv_depthwise.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"
#include "depthwise3x3_s8.inc"

// Columns 0 and 1, and in their place 2 and 3.
top0            .req d9
top1            .req d10
mid0            .req d11
mid1            .req d12
low0            .req d13
low1            .req d14
top2            .req d9
top3            .req d10
mid2            .req d11
mid3            .req d12
low2            .req d13
low3            .req d14

        // What is padding, or seen by no output of the row, is not loaded.
.macro  load_columns
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
        // It is the odd one, and stored over the other.
.macro  lone
        mov     out_gap, #0
.endm
.macro  early1
        vmull.s8 t1, top1, w00
.endm
.macro  early2
        vmull.s8 t2, mid0, w10
.endm
.macro  early3
        vmull.s8 t3, mid1, w10
.endm
.macro  early4
        vmull.s8 t0, top0, w00
.endm
.macro  first_products
        early1
        early2
        early3
        early4
.endm

        // The sums of two outputs, with the multipliers and the magic number. A column takes over the
        // register of one as soon as the last product with that is under way. Sums of the even output
        // are in t0 and t2, of the odd one in t1 and t3. padded: column 3 is.
.macro  sums    padded
        vmlal.s8 t2, mid1, w11
        vld1.32 {d28-d31}, [bias:128]
        vmlal.s8 t0, top1, w01
        vld1.8  {mid2}, [row1], tap_stride
        vmlal.s8 t1, low1, w20
        vld1.8  {top2}, [row0], tap_stride
        vaddw.s16 evenl, oddl, t2l
        vaddw.s16 evenh, oddh, t2h
    .if \padded
        vld1.8  {top3[]}, [temp]
    .else
        vld1.8  {top3}, [row0], tap_stride
    .endif
        vmull.s8 t2, low0, w20
        vaddw.s16 oddl, oddl, t1l
        vaddw.s16 oddh, oddh, t1h
    .if \padded
        vld1.8  {mid3[]}, [temp]
    .else
        vld1.8  {mid3}, [row1], tap_stride
    .endif
        vmlal.s8 t3, top2, w01
        vaddw.s16 evenl, evenl, t0l
        vaddw.s16 evenh, evenh, t0h
        vmlal.s8 t2, low1, w21
        vmull.s8 t1, top3, w02
        vld1.8  {low2}, [row2], tap_stride
        vmull.s8 t0, top2, w02
        vaddw.s16 oddl, oddl, t3l
        vaddw.s16 oddh, oddh, t3h
        vmlal.s8 t1, mid2, w11
    .if \padded
        vld1.8  {low3[]}, [temp]
    .else
        vld1.8  {low3}, [row2], tap_stride
    .endif
        vmlal.s8 t0, mid2, w12
        vaddw.s16 evenl, evenl, t2l
        vaddw.s16 evenh, evenh, t2h
        vmull.s8 t3, mid3, w12
        vmull.s8 t2, low2, w22
        vaddw.s16 oddl, oddl, t1l
        vaddw.s16 oddh, oddh, t1h
        vmlal.s8 t3, low2, w21
        vmull.s8 t1, low3, w22
        vaddw.s16 evenl, evenl, t0l
        vaddw.s16 evenh, evenh, t0h
        vld1.32 {d16[], d17[]}, [sp]
        vaddw.s16 oddl, oddl, t3l
        vaddw.s16 oddh, oddh, t3h
        vaddw.s16 evenl, evenl, t2l
        vaddw.s16 evenh, evenh, t2h
        vld1.32 {d20-d23}, [multiplier:128]
        vaddw.s16 oddl, oddl, t1l
        vaddw.s16 oddh, oddh, t1h
.endm

func    n8_depthwise3x3s1_s8_neon
        begin   1
        cmp     left, #0
        beq     .Llast
.Lpair:
        sums    0
.Lround:
        finish

        // Unless pairs follow the lone output that this is.
.Llast:
        ldr     temp, [sp, #AT_BEHIND]
        cmp     temp, #0
        ldr     temp, [args, #N8_OFF_DW_RIGHT]
        cmpeq   temp, #1
        bne     .Lpair
        add     temp, args, #N8_OFF_DW_IN_ZERO_POINT
        sums    1
        b       .Lround
endfunc n8_depthwise3x3s1_s8_neon
