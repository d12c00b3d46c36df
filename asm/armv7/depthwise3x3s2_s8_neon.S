// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps and step = 2 * tap_stride.
//
//   void n8_depthwise3x3s2_s8_neon(const struct n8_depthwise_args *args);
//
// Two outputs need 5 inputs of each of the 3 rows, top, mid, low, of which the first is the one that
// the outputs before them had last:
//
//   0 1 2 3 4    inputs
//   +-+-+        even output
//       +-+-+    odd output
//
// Bounds, registers, stack: depthwise3x3_s8.inc. The layout of all arrays: runtime/kernel.h. conv.c,
// conv_prove.c and conv_depthwise.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"
#include "depthwise3x3_s8.inc"

// Column 0, and in its place 4; columns 1, 2 and 3 of a row after the other.
top0            .req d9
mid0            .req d10
low0            .req d11
top4            .req d9
mid4            .req d10
low4            .req d11
in1             .req d12
in2             .req d13
in3             .req d14

.macro  load_columns
        ldr     temp, [args, #N8_OFF_DW_LEFT]
        cmp     temp, #0
        bne     2f
        vld1.8  {top0}, [row0], tap_stride
        vld1.8  {mid0}, [row1], tap_stride
        vld1.8  {low0}, [row2], tap_stride
        b       3f
2:      add     temp, args, #N8_OFF_DW_IN_ZERO_POINT
        vld1.8  {top0[]}, [temp]
        vld1.8  {mid0[]}, [temp]
        vld1.8  {low0[]}, [temp]
3:
.endm
        // It is the even one. The other sees column 2 only, and is stored beside what counts.
.macro  lone
        mov     beside, #0
        add     temp, sp, #AT_LONE
        sub     out_gap, temp, out
.endm
.macro  early1
.endm
.macro  early2
        vmull.s8 t2, mid0, w10
.endm
.macro  early3
.endm
.macro  early4
        vmull.s8 t0, top0, w00
.endm
.macro  first_products
        early2
        early4
.endm

func    n8_depthwise3x3s2_s8_neon
        begin   2

        // A column takes over the register of one as soon as the last product with that is under
        // way. Sums of the even output are in t0 and t2, of the odd one in t1 and t3.
.Lpair:
.Llast:
        vld1.8  {in1}, [row0], tap_stride
        vld1.8  {in2}, [row0], beside
        vld1.8  {in3}, [row0], beside
        vmlal.s8 t0, in1, w01
        vld1.8  {top4}, [row0], tap_stride
        vmull.s8 t1, in2, w00
        vld1.8  {in1}, [row1], tap_stride
        vmlal.s8 t2, in2, w02
        vld1.8  {in2}, [row1], beside
        vmull.s8 t3, top4, w02
        vld1.32 {d28-d31}, [bias:128]
        vmlal.s8 t1, in3, w01
        vld1.8  {in3}, [row1], beside
        vaddw.s16 evenl, oddl, t0l
        vaddw.s16 evenh, oddh, t0h
        vmull.s8 t0, in1, w11
        vld1.8  {mid4}, [row1], tap_stride
        vmlal.s8 t3, in2, w10
        vld1.8  {in1}, [row2], tap_stride
        vaddw.s16 evenl, evenl, t2l
        vaddw.s16 evenh, evenh, t2h
        vmlal.s8 t0, in2, w12
        vmull.s8 t2, low0, w20
        vld1.8  {in2}, [row2], beside
        vaddw.s16 oddl, oddl, t1l
        vaddw.s16 oddh, oddh, t1h
        vmull.s8 t1, in3, w11
        vld1.8  {in3}, [row2], beside
        vaddw.s16 oddl, oddl, t3l
        vaddw.s16 oddh, oddh, t3h
        vmlal.s8 t2, in1, w21
        vld1.8  {low4}, [row2], tap_stride
        vmlal.s8 t1, mid4, w12
        vaddw.s16 evenl, evenl, t0l
        vaddw.s16 evenh, evenh, t0h
        vmull.s8 t3, in2, w20
        vmull.s8 t0, in2, w22
        vaddw.s16 evenl, evenl, t2l
        vaddw.s16 evenh, evenh, t2h
        vmlal.s8 t3, in3, w21
        vaddw.s16 oddl, oddl, t1l
        vaddw.s16 oddh, oddh, t1h
        vmull.s8 t1, low4, w22
        vaddw.s16 evenl, evenl, t0l
        vaddw.s16 evenh, evenh, t0h
        vld1.32 {d16[], d17[]}, [sp]
        vaddw.s16 oddl, oddl, t3l
        vaddw.s16 oddh, oddh, t3h
        vld1.32 {d20-d23}, [multiplier:128]
        vaddw.s16 oddl, oddl, t1l
        vaddw.s16 oddh, oddh, t1h
        finish
endfunc n8_depthwise3x3s2_s8_neon
