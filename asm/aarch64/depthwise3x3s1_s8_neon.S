// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps and step = tap_stride.
//
//   void n8_depthwise3x3s1_s8_neon(const struct n8_depthwise_args *args);
//
// A group of 4 outputs needs 6 inputs of each of the 3 rows, top, mid, low; in the top one:
//
//   0 1 2 3 4 5    inputs
//   +-+-+          output 0
//     +-+-+        output 1
//       +-+-+      output 2
//         +-+-+    output 3
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
#define top4d           d13
#define top5d           d14
#define mid0            v15
#define mid1            v16
#define mid2            v17
#define mid3            v9
#define mid4            v10
#define mid5            v11
#define mid4d           d10
#define mid5d           d11
#define low0            v12
#define low1            v13
#define low2            v14
#define low3            v15
#define low4            v16
#define low5            v17
#define low4d           d16
#define low5d           d17

func    n8_depthwise3x3s1_s8_neon
#include "depthwise3x3_s8_begin.inc"

        // Each input is loaded once and serves all outputs that see it. The next row's inputs
        // take over a register as soon as the last product with it is under way. The row
        // pointers end at the next group.
.Lgroup:
        ld1     {top0.8b}, [row0], tap_stride
        ld1     {top1.8b}, [row0], tap_stride
        ld1     {top2.8b}, [row0], tap_stride
        ld1     {top3.8b}, [row0], tap_stride
        ldr     top4d, [row0]
        ldr     top5d, [row0, tap_stride]
        smull   t0.8h, top0.8b, w00.8b
        ld1     {mid0.8b}, [row1], tap_stride
        smull   t1.8h, top1.8b, w00.8b
        smull   t2.8h, top2.8b, w00.8b
        ld1     {mid1.8b}, [row1], tap_stride
        smull   t3.8h, top3.8b, w00.8b
        smlal   t0.8h, top1.8b, w01.8b
        ld1     {mid2.8b}, [row1], tap_stride
        smlal   t1.8h, top2.8b, w01.8b
        smlal   t2.8h, top3.8b, w01.8b
        ld1     {mid3.8b}, [row1], tap_stride
        smlal   t3.8h, top4.8b, w01.8b
        saddw   sum0l.4s, biasl.4s, t0.4h
        saddw2  sum0h.4s, biash.4s, t0.8h
        ldr     mid4d, [row1]
        saddw   sum1l.4s, biasl.4s, t1.4h
        saddw2  sum1h.4s, biash.4s, t1.8h
        saddw   sum2l.4s, biasl.4s, t2.4h
        saddw2  sum2h.4s, biash.4s, t2.8h
        saddw   sum3l.4s, biasl.4s, t3.4h
        saddw2  sum3h.4s, biash.4s, t3.8h
        smull   t0.8h, top2.8b, w02.8b
        ldr     mid5d, [row1, tap_stride]
        smull   t1.8h, top3.8b, w02.8b
        smull   t2.8h, top4.8b, w02.8b
        smull   t3.8h, top5.8b, w02.8b

        // The third tap of a row shares its sum with the first of the next.
        smlal   t0.8h, mid0.8b, w10.8b
        ld1     {low0.8b}, [row2], tap_stride
        smlal   t1.8h, mid1.8b, w10.8b
        smlal   t2.8h, mid2.8b, w10.8b
        ld1     {low1.8b}, [row2], tap_stride
        smlal   t3.8h, mid3.8b, w10.8b
        saddw   sum0l.4s, sum0l.4s, t0.4h
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        ld1     {low2.8b}, [row2], tap_stride
        saddw   sum1l.4s, sum1l.4s, t1.4h
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        saddw   sum2l.4s, sum2l.4s, t2.4h
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        ld1     {low3.8b}, [row2], tap_stride
        saddw   sum3l.4s, sum3l.4s, t3.4h
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        smull   t0.8h, mid1.8b, w11.8b
        ldr     low4d, [row2]
        smull   t1.8h, mid2.8b, w11.8b
        smull   t2.8h, mid3.8b, w11.8b
        smull   t3.8h, mid4.8b, w11.8b
        smlal   t0.8h, mid2.8b, w12.8b
        ldr     low5d, [row2, tap_stride]
        smlal   t1.8h, mid3.8b, w12.8b
        smlal   t2.8h, mid4.8b, w12.8b
        smlal   t3.8h, mid5.8b, w12.8b
        saddw   sum0l.4s, sum0l.4s, t0.4h
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        saddw   sum1l.4s, sum1l.4s, t1.4h
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        saddw   sum2l.4s, sum2l.4s, t2.4h
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        saddw   sum3l.4s, sum3l.4s, t3.4h
        saddw2  sum3h.4s, sum3h.4s, t3.8h

        // The last three taps: a pair and a single product.
        smull   t0.8h, low0.8b, w20.8b
        smull   t1.8h, low1.8b, w20.8b
        smull   t2.8h, low2.8b, w20.8b
        smull   t3.8h, low3.8b, w20.8b
        smlal   t0.8h, low1.8b, w21.8b
        smlal   t1.8h, low2.8b, w21.8b
        smlal   t2.8h, low3.8b, w21.8b
        smlal   t3.8h, low4.8b, w21.8b
        saddw   sum0l.4s, sum0l.4s, t0.4h
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        saddw   sum1l.4s, sum1l.4s, t1.4h
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        saddw   sum2l.4s, sum2l.4s, t2.4h
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        saddw   sum3l.4s, sum3l.4s, t3.4h
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        smull   t0.8h, low2.8b, w22.8b
        smull   t1.8h, low3.8b, w22.8b
        smull   t2.8h, low4.8b, w22.8b
        smull   t3.8h, low5.8b, w22.8b
#include "depthwise_s8_last4.inc"
#include "depthwise_s8_round4.inc"
        st1     {t0.d}[0], [out], out_stride
        st1     {t0.d}[1], [out], out_stride
        st1     {t2.d}[0], [out], out_stride
        st1     {t2.d}[1], [out], out_stride
        subs    pixels, pixels, #4
        b.hs    .Lgroup

#include "depthwise3x3_s8_end.inc"
endfunc n8_depthwise3x3s1_s8_neon
