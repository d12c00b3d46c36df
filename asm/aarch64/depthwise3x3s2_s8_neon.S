// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps and step = 2 * tap_stride.
//
//   void n8_depthwise3x3s2_s8_neon(const struct n8_depthwise_args *args);
//
// A group of 4 outputs needs 9 inputs of each of the 3 rows, top, mid, low; in the top one:
//
//   0 1 2 3 4 5 6 7 8    inputs
//   +-+-+                output 0
//       +-+-+            output 1
//           +-+-+        output 2
//               +-+-+    output 3
//
// Bounds, registers, stack: depthwise3x3_s8_begin.inc. The layout of all arrays:
// runtime/kernel.h. conv.c, conv_prove.c and conv_depthwise.c prove what kernel.h demands.
#include "asm.h"
#include "kernel.h"

#define top0            v9
#define top1            v10
#define top2            v11
#define top3            v12
#define top4            v13
#define top5            v14
#define top6            v15
#define top7            v16
#define top8            v17
#define mid0            v9
#define mid1            v10
#define mid2            v12
#define mid3            v14
#define mid4            v16
#define mid5            v11
#define mid6            v13
#define mid7            v15
#define mid8            v17
#define low0            v14
#define low1            v15
#define low2            v9
#define low3            v16
#define low4            v10
#define low5            v13
#define low6            v11
#define low7            v17
#define low8            v12

func    n8_depthwise3x3s2_s8_neon
#include "depthwise3x3_s8_begin.inc"

        // Each input is loaded once and serves all outputs that see it. The next row's inputs
        // take over a register as soon as the last product with it is under way, and the first
        // ones of the next group are loaded while the sums of this one are requantized. The row
        // pointers end at the next group.
.Lgroup:
        mov     next, row0
        ld1     {top0.8b}, [next], tap_stride
        ld1     {top1.8b}, [next], tap_stride
        ld1     {top2.8b}, [next], tap_stride
        ld1     {top3.8b}, [next], tap_stride
.Lloaded:
        mov     row0, next
        smull   t0.8h, top0.8b, w00.8b
        ld1     {top4.8b}, [row0], tap_stride
        ld1     {top5.8b}, [row0], tap_stride
        ld1     {top6.8b}, [row0], tap_stride
        smull   t1.8h, top2.8b, w00.8b
        ld1     {top7.8b}, [row0], tap_stride
        smlal   t0.8h, top1.8b, w01.8b
        ld1     {top8.8b}, [row0]
        smlal   t1.8h, top3.8b, w01.8b
        ld1     {mid0.8b}, [row1], tap_stride
        smull   t2.8h, top4.8b, w00.8b
        ld1     {mid1.8b}, [row1], tap_stride
        smull   t3.8h, top6.8b, w00.8b
        saddw   sum0l.4s, biasl.4s, t0.4h
        saddw2  sum0h.4s, biash.4s, t0.8h
        smlal   t2.8h, top5.8b, w01.8b
        smlal   t3.8h, top7.8b, w01.8b
        ld1     {mid2.8b}, [row1], tap_stride
        saddw   sum1l.4s, biasl.4s, t1.4h
        ld1     {mid3.8b}, [row1], tap_stride
        saddw2  sum1h.4s, biash.4s, t1.8h
        ld1     {mid4.8b}, [row1], tap_stride
        saddw   sum2l.4s, biasl.4s, t2.4h
        saddw2  sum2h.4s, biash.4s, t2.8h
        saddw   sum3l.4s, biasl.4s, t3.4h
        saddw2  sum3h.4s, biash.4s, t3.8h
        smull   t0.8h, top2.8b, w02.8b
        ld1     {mid5.8b}, [row1], tap_stride
        smull   t1.8h, top4.8b, w02.8b
        ld1     {mid6.8b}, [row1], tap_stride
        smull   t2.8h, top6.8b, w02.8b
        ld1     {mid7.8b}, [row1], tap_stride
        smull   t3.8h, top8.8b, w02.8b
        ld1     {mid8.8b}, [row1]

        // The third tap of a row shares its sum with the first of the next.
        smlal   t0.8h, mid0.8b, w10.8b
        smlal   t1.8h, mid2.8b, w10.8b
        smlal   t2.8h, mid4.8b, w10.8b
        smlal   t3.8h, mid6.8b, w10.8b
        saddw   sum0l.4s, sum0l.4s, t0.4h
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        saddw   sum1l.4s, sum1l.4s, t1.4h
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        saddw   sum2l.4s, sum2l.4s, t2.4h
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        saddw   sum3l.4s, sum3l.4s, t3.4h
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        smull   t0.8h, mid1.8b, w11.8b
        smull   t1.8h, mid3.8b, w11.8b
        ld1     {low0.8b}, [row2], tap_stride
        smull   t2.8h, mid5.8b, w11.8b
        smull   t3.8h, mid7.8b, w11.8b
        ld1     {low1.8b}, [row2], tap_stride
        ld1     {low2.8b}, [row2], tap_stride
        smlal   t0.8h, mid2.8b, w12.8b
        smlal   t1.8h, mid4.8b, w12.8b
        ld1     {low3.8b}, [row2], tap_stride
        ld1     {low4.8b}, [row2], tap_stride
        smlal   t2.8h, mid6.8b, w12.8b
        ld1     {low5.8b}, [row2], tap_stride
        smlal   t3.8h, mid8.8b, w12.8b
        ld1     {low6.8b}, [row2], tap_stride
        saddw   sum0l.4s, sum0l.4s, t0.4h
        ld1     {low7.8b}, [row2], tap_stride
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        saddw   sum1l.4s, sum1l.4s, t1.4h
        ld1     {low8.8b}, [row2]
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        saddw   sum2l.4s, sum2l.4s, t2.4h
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        saddw   sum3l.4s, sum3l.4s, t3.4h
        saddw2  sum3h.4s, sum3h.4s, t3.8h

        // The last three taps: a pair and a single product.
        smull   t0.8h, low0.8b, w20.8b
        smull   t1.8h, low2.8b, w20.8b
        smull   t2.8h, low4.8b, w20.8b
        smull   t3.8h, low6.8b, w20.8b
        smlal   t0.8h, low1.8b, w21.8b
        smlal   t1.8h, low3.8b, w21.8b
        smlal   t2.8h, low5.8b, w21.8b
        smlal   t3.8h, low7.8b, w21.8b
        saddw   sum0l.4s, sum0l.4s, t0.4h
        ld1     {scalesl.4s, scalesh.4s}, [multiplier]
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        saddw   sum1l.4s, sum1l.4s, t1.4h
        add     temp1, sp, #116
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        // Low bytes of the int32 limits are the int8 limits.
        add     temp0, args, #N8_OFF_DW_LO
        ld1r    {offset.4s}, [temp1]
        saddw   sum2l.4s, sum2l.4s, t2.4h
        ld1r    {qlo.16b}, [temp0]
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        add     temp0, sp, #112
        ld1r    {magic.4s}, [temp0]
        sub     temp0, row0, tap_stride, lsl #3
        saddw   sum3l.4s, sum3l.4s, t3.4h
        cmp     pixels, #4
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        csel    next, row0, temp0, hs
        smull   t0.8h, low2.8b, w22.8b
        smull   t1.8h, low4.8b, w22.8b
        smull   t2.8h, low6.8b, w22.8b
        smull   t3.8h, low8.8b, w22.8b
        saddw   sum0l.4s, sum0l.4s, t0.4h
        ld1     {top0.8b}, [next], tap_stride
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        saddw   sum1l.4s, sum1l.4s, t1.4h
        ld1     {top1.8b}, [next], tap_stride
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        saddw   sum2l.4s, sum2l.4s, t2.4h
        ld1     {top2.8b}, [next], tap_stride
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        saddw   sum3l.4s, sum3l.4s, t3.4h
        ld1     {top3.8b}, [next], tap_stride
        saddw2  sum3h.4s, sum3h.4s, t3.8h
#include "depthwise_s8_round4.inc"
        st1     {t0.d}[0], [out], out_stride
        st1     {t0.d}[1], [out], out_stride
        st1     {t2.d}[0], [out], out_stride
        st1     {t2.d}[1], [out], out_stride
        subs    pixels, pixels, #4
        b.hs    .Lloaded

#include "depthwise3x3_s8_end.inc"
endfunc n8_depthwise3x3s2_s8_neon
