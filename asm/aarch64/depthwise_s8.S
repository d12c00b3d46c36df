// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution of int8:
//
//   acc''[r][p][c] = bias[c] + sum over y, x of
//                    rows[r * ratio + y][p * step + x * tap_stride + c] * w[y][x][c]
//   v = fmul((float) acc''[r][p][c], multiplier[c]), leaky by slope[c] if there is one        (5b)
//   out[r][p][c] = clamp(rne(v) + zero_point, lo, hi)                                          (5)
//
// and where that is proved by one fused multiply-add instead, which leaves rne(v) + zero_point in the
// low 16 bits of a float (5d).
//
//   void n8_depthwise..._s8_...(const struct n8_depthwise_args *args);
//
// By 16-bit products, of one row of outputs: depthwise_s8_neon, of any number of taps; of two rows:
// depthwise3x3s1_s8_neon and depthwise3x3s2_s8_neon, of step = tap_stride and 2 * tap_stride. By
// dot products, of two rows: depthwise3x3s1_s8_dotprod and depthwise3x3s2_s8_dotprod. A group of
// four outputs of 8 channels is computed at once: sum0-sum3, channels 0-3 in l and 4-7 in h.
//
// Bounds: |input| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products
//   that share an int16 lane reach at most 32640; saddw empties the lane before a third. sdot adds
//   exact products to int32. int32 is proved by (12).
// Stack: 192 bytes.
//
//   sp + 0     d8-d15
//   sp + 64    x19-x24
//   sp + 120   x30, signed: layers that are not fused are rounded by a function
//   sp + 128   by dot products: what the sums of the block begin with, and its addends;
//              3x3 taps by 16-bit products: x25-x28, then 8 bytes of padding
//
// The layout of all arrays: runtime/kernel.h, whose demands runtime/conv proves.
#include "asm.h"
#include "kernel.h"

        registers x, 12, out_stride, bias, multiplier, slope
        registers x, 16, temp0, temp1
        registers w, 16, temp0w, temp1w
        registers v, 18, t0, t1, t2, t3, sum0l, sum0h, sum1l, sum1h
        registers v, 26, sum2l, sum2h, sum3l, sum3h
args    .req x0
facts   .req w19                // bit 0: fused; 1: limits clamp

// Entry, and the way out.
.macro  save_all
        hint    #25                             // paciasp
        .cfi_negate_ra_state
        enter   192, D8_TO_D15, x19, x20, x21, x22, x23, x24
        str     x30, [sp, #120]
        .cfi_rel_offset x30, 120
        ldr     out_stride, [args, #N8_OFF_DW_OUT_STRIDE]
        ldp     bias, temp0, [args, #N8_OFF_DW_BIAS]    // and start
        ldp     multiplier, slope, [args, #N8_OFF_DW_MULTIPLIER]
        ldr     temp1, [args, #N8_OFF_DW_ADDEND]
        cmp     temp0, #0
        csel    bias, bias, temp0, eq
        csel    slope, slope, temp1, eq         // addends, as no fused layer has slopes
        cset    facts, ne
        ldp     w9, w10, [args, #N8_OFF_DW_LO]  // and hi
        add     w9, w9, #128
        eor     w10, w10, #127
        orr     w9, w9, w10
        cmp     w9, #0
        cset    w9, ne
        bfi     facts, w9, #1, #1
.endm

.macro  leave_all
        ldr     x30, [sp, #120]
        ldp     x23, x24, [sp, #96]
        ldp     x21, x22, [sp, #80]
        ldp     x19, x20, [sp, #64]
        ldp     d14, d15, [sp, #48]
        ldp     d12, d13, [sp, #32]
        ldp     d10, d11, [sp, #16]
        ldp     d8, d9, [sp], #192
        .cfi_def_cfa_offset 0
        restored D8_TO_D15, x19, x20, x21, x22, x23, x24, x30
        hint    #29                             // autiasp
        .cfi_negate_ra_state
        ret
.endm

// The addends of the block, or anything if the layer is not fused.
.macro  load_addends low, high
        tst     facts, #1
        csel    temp0, multiplier, slope, eq
        ldp     \low, \high, [temp0]
.endm

// Multipliers and slopes or addends, if there are any, of the next block.
.macro  next_block
        add     multiplier, multiplier, #32
        add     temp0, slope, #32
        cmp     slope, #0
        csel    slope, xzr, temp0, eq
.endm

// Requantizes sum0-sum3 to 16 bits in v18-v21, not clamped. What kernels call for the layers, and
// they are few, that are not fused (5d). Only v18-v29, x16 and the flags change.
//
// Bounds: fcvtns saturates to 32 bits, everything after it to 16, so nothing wraps and the clamp
//   sees the right side; NaN becomes 0.
        registers v, 18, scales, slopes, negative, scaled

.macro  to_integers     sum
        scvtf   \sum\().4s, \sum\().4s
        fmul    \sum\().4s, \sum\().4s, scales.4s
        fcmlt   negative.4s, \sum\().4s, #0.0
        fmul    scaled.4s, \sum\().4s, slopes.4s
        bit     \sum\().16b, scaled.16b, negative.16b
        fcvtns  \sum\().4s, \sum\().4s
.endm

func    n8_depthwise_round4
        fmov    slopes.4s, #1.0
        cbz     slope, 1f
        ld1     {slopes.4s}, [slope]
1:      ld1     {scales.4s}, [multiplier]
        to_integers v22
        to_integers v24
        to_integers v26
        to_integers v28
        cbz     slope, 2f
        add     temp0, slope, #16
        ld1     {slopes.4s}, [temp0]
2:      add     temp0, multiplier, #16
        ld1     {scales.4s}, [temp0]
        to_integers v23
        to_integers v25
        to_integers v27
        to_integers v29
        spread  v21.8h, N8_OFF_DW_ZERO_POINT, temp0
        sqxtn   v22.4h, v22.4s
        sqxtn   v24.4h, v24.4s
        sqxtn   v26.4h, v26.4s
        sqxtn   v28.4h, v28.4s
        sqxtn2  v22.8h, v23.4s
        sqxtn2  v24.8h, v25.4s
        sqxtn2  v26.8h, v27.4s
        sqxtn2  v28.8h, v29.4s
        sqadd   v18.8h, v22.8h, v21.8h
        sqadd   v19.8h, v24.8h, v21.8h
        sqadd   v20.8h, v26.8h, v21.8h
        sqadd   v21.8h, v28.8h, v21.8h
        ret
endfunc n8_depthwise_round4

// Adds products to a sum, or to the bias that it begins with.
.macro  accumulate sum, products, from
    .ifb \from
        accumulate \sum, \products, \sum
    .else
        saddw   \sum\()l.4s, \from\()l.4s, \products\().4h
        saddw2  \sum\()h.4s, \from\()h.4s, \products\().8h
    .endif
.endm

// By 16-bit products --------------------------------------------------------------------------

        registers v, 13, scalesl, scalesh, addendl, addendh
        registers v, 30, biasl, biash
out     .req x11

// Requantizes sum0-sum3 to 16 bits in t0-t3, with the multipliers and the addends of (5d) in their
// registers: the results are in the low 16 bits of floats. `id` makes the labels of a kernel its own;
// round4_rare, out of the way, has what few layers need, limits other than those of saturation too.
//
// Bounds: by (5d) results fit 16 bits; sqxtn, which users of this begin with, saturates.
.macro  round4  id
        tbz     facts, #0, .Lany\id
        fill    mov, addendl.16b, t0.16b, t2.16b
        fill    mov, addendh.16b, t1.16b, t3.16b
        fmla    t0.4s, sum0l.4s, scalesl.4s
        fmla    t1.4s, sum0h.4s, scalesh.4s
        fmla    t2.4s, sum1l.4s, scalesl.4s
        fmla    t3.4s, sum1h.4s, scalesh.4s
        fill    mov, addendl.16b, sum0l.16b, sum1l.16b
        fill    mov, addendh.16b, sum0h.16b, sum1h.16b
        fmla    sum0l.4s, sum2l.4s, scalesl.4s
        fmla    sum0h.4s, sum2h.4s, scalesh.4s
        fmla    sum1l.4s, sum3l.4s, scalesl.4s
        fmla    sum1h.4s, sum3h.4s, scalesh.4s
        uzp1    t0.8h, t0.8h, t1.8h
        uzp1    t1.8h, t2.8h, t3.8h
        uzp1    t2.8h, sum0l.8h, sum0h.8h
        uzp1    t3.8h, sum1l.8h, sum1h.8h
.Lrounded\id:
        tbnz    facts, #1, .Llimits\id
.Lclamped\id:
.endm

.macro  round4_rare id
        // Low halves of the int32 limits are the int16 limits.
.Llimits\id:
        spread  sum0l.8h, N8_OFF_DW_LO, temp0
        spread  sum0h.8h, N8_OFF_DW_HI, temp0
        each    smax, sum0l.8h, t0.8h, t1.8h, t2.8h, t3.8h
        each    smin, sum0h.8h, t0.8h, t1.8h, t2.8h, t3.8h
        b       .Lclamped\id

.Lany\id:
        bl      n8_depthwise_round4
        b       .Lrounded\id
.endm

// Any number of taps: they are taken in pairs, whose products share an int16 lane; where their
// number is odd, the first stands alone. The products of a pair are added to the sums while the
// inputs of the next one are loaded. The last group of a row ends with the row; where a row has
// fewer than 4 outputs, the last one is computed several times.
        registers x, 1, in0, step1, step2, step3, tap, next_row, left
        registers x, 8, weight, first_weight, pairs
        registers x, 20, width, column, first, count
        registers v, 0, f0, f1, f2, f3, wf, g0, g1, g2, g3, wg
        registers d, 0, f0d, f1d, f2d, f3d, wfd, g0d, g1d, g2d, g3d, wgd
first_channel .req x24
widthw        .req w20

func    n8_depthwise_s8_neon
        save_all
        ldp     tap, step1, [args, #N8_OFF_DW_TAP_STRIDE]
        ldp     first_weight, count, [args, #N8_OFF_DW_WEIGHTS]
        mov     first_channel, #0
        // Distances from the first output of a group to the others.
        lsl     step2, step1, #1
        add     step3, step2, step1
        cmp     count, #2
        csel    step1, xzr, step1, lo
        csel    step2, step1, step2, ls
        cmp     count, #3
        csel    step3, step2, step3, ls

.Lchannels:
        ld1     {biasl.4s, biash.4s}, [bias], #32
        mov     first, #0

.Lgroup:
        ldr     temp0, [args, #N8_OFF_DW_STEP]
        ldr     out, [args, #N8_OFF_DW_OUT]
        madd    column, first, temp0, first_channel
        madd    out, first, out_stride, out
        add     out, out, first_channel
        ldr     next_row, [args, #N8_OFF_DW_ROWS]
        mov     weight, first_weight
        ldr     in0, [next_row], #8
        ldr     widthw, [args, #N8_OFF_DW_KERNEL_WIDTH]
        ldr     temp0w, [args, #N8_OFF_DW_KERNEL_HEIGHT]
        mul     pairs, temp0, width
        add     in0, in0, column
        fill    mov, biasl.16b, sum0l.16b, sum1l.16b, sum2l.16b, sum3l.16b
        fill    mov, biash.16b, sum0h.16b, sum1h.16b, sum2h.16b, sum3h.16b
        mov     left, width
        tbnz    pairs, #0, .Lfirst_alone
        fill    movi, #0, t0.16b, t1.16b, t2.16b, t3.16b
        sub     in0, in0, tap
        add     left, left, #1
        lsr     pairs, pairs, #1
        b       .Lpair
.Lfirst_alone:
        ldr     f0d, [in0]
        ldr     wfd, [weight], #8
        ldr     f1d, [in0, step1]
        ldr     f2d, [in0, step2]
        ldr     f3d, [in0, step3]
        smull   t0.8h, f0.8b, wf.8b
        smull   t1.8h, f1.8b, wf.8b
        smull   t2.8h, f2.8b, wf.8b
        smull   t3.8h, f3.8b, wf.8b
        lsr     pairs, pairs, #1
        cbz     pairs, .Lsum

.Lpair:
        add     in0, in0, tap
        subs    left, left, #1
        b.eq    .Lrow_first
.Lfirst:
        ldr     f0d, [in0]
        saddw   sum0l.4s, sum0l.4s, t0.4h
        ldr     wfd, [weight], #8
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        ldr     f1d, [in0, step1]
        saddw   sum1l.4s, sum1l.4s, t1.4h
        ldr     f2d, [in0, step2]
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        ldr     f3d, [in0, step3]
        add     in0, in0, tap
        subs    left, left, #1
        b.eq    .Lrow_second
.Lsecond:
        ldr     g0d, [in0]
        saddw   sum2l.4s, sum2l.4s, t2.4h
        ldr     wgd, [weight], #8
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        ldr     g1d, [in0, step1]
        saddw   sum3l.4s, sum3l.4s, t3.4h
        ldr     g2d, [in0, step2]
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        ldr     g3d, [in0, step3]
        smull   t0.8h, f0.8b, wf.8b
        smull   t1.8h, f1.8b, wf.8b
        smull   t2.8h, f2.8b, wf.8b
        smull   t3.8h, f3.8b, wf.8b
        smlal   t0.8h, g0.8b, wg.8b
        smlal   t1.8h, g1.8b, wg.8b
        smlal   t2.8h, g2.8b, wg.8b
        smlal   t3.8h, g3.8b, wg.8b
        subs    pairs, pairs, #1
        b.ne    .Lpair

.Lsum:
        // The last products are added while the constants are loaded.
        accumulate sum0, t0
        load_addends q15, q16
        saddw   sum1l.4s, sum1l.4s, t1.4h
        ld1     {scalesl.4s, scalesh.4s}, [multiplier]
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        accumulate sum2, t2
        accumulate sum3, t3
        round4  _any_size
        sqxtn   t0.8b, t0.8h
        sqxtn   t1.8b, t1.8h
        sqxtn   t2.8b, t2.8h
        sqxtn   t3.8b, t3.8h
        st1     {t0.8b}, [out], out_stride
        cmp     count, #2
        b.lo    .Lnext
        st1     {t1.8b}, [out], out_stride
        b.eq    .Lnext
        cmp     count, #4
        st1     {t2.8b}, [out], out_stride
        b.lo    .Lnext
        st1     {t3.8b}, [out]
        add     first, first, #4
        cmp     first, count
        b.hs    .Lnext
        sub     temp0, count, #4
        cmp     first, temp0
        csel    first, first, temp0, lo
        b       .Lgroup

.Lnext:
        mov     first_weight, weight
        next_block
        add     first_channel, first_channel, #8
        ldr     temp0, [args, #N8_OFF_DW_CHANNELS]
        cmp     first_channel, temp0
        b.lo    .Lchannels
        leave_all

        // The next tap is the first of its row.
.Lrow_first:
        ldr     in0, [next_row], #8
        mov     left, width
        add     in0, in0, column
        b       .Lfirst
.Lrow_second:
        ldr     in0, [next_row], #8
        mov     left, width
        add     in0, in0, column
        b       .Lsecond
        round4_rare _any_size
endfunc n8_depthwise_s8_neon

// 3x3 taps: the 9 weight vectors of a block stay in registers for both rows of outputs, which are
// computed one after the other.
//
//        tap00 tap01 tap02    v0 v1 v2       4 outputs:  sum0 v22 v23
//        tap10 tap11 tap12    v3 v4 v5                   sum1 v24 v25    channels 0-3, 4-7
//        tap20 tap21 tap22    v6 v7 v8                   sum2 v26 v27
//        inputs         v9-v17                           sum3 v28 v29
//        products       t0-t3 v18-v21                    bias v30 v31
//
// Each input is loaded once and serves all outputs that see it. The next row's inputs take over a
// register as soon as the last product with it is under way, and the first ones of the next group
// are loaded while the sums of this one are requantized. The row pointers end at the next group.
        registers x, 1, row0, row1, row2, tap_stride, tap_stride2, last_tap, weights
        registers x, 8, pixels, edge1, channel
        registers x, 20, next, upper0, upper1, back, edge2, rows, out_row, right_tap, padding
        // edge1, edge2: where the first inputs of a group are in mid and low, row1 and row2 or,
        //     of padding, a place on the stack
        // last_tap: tap_stride, or 0 if the last tap of the last output is padding; right_tap: the
        //     same if this group is the last one, else tap_stride
rightw  .req w6
paddingw .req w28
leftw   .req w17
        registers v, 0, tap00, tap01, tap02, tap10, tap11, tap12, tap20, tap21, tap22

        // Two inputs to a register: the upper one is loaded to a general register beside a product,
        // the lower one beside the insertion of the upper one before, which is what the Cortex-A53
        // begins together.
.macro  upper   to, row, by=tap_stride
        ldr     \to, [\row, \by]
.endm

.macro  lower   to, row, last, last_upper
        ld1     {\to\().8b}, [\row], tap_stride2
    .ifnb \last
        mov     \last\().d[1], \last_upper
    .endif
.endm

        // The first ones of a row, which may be padding.
.macro  first_lower to, row, edge, last, last_upper
        ld1     {\to\().8b}, [\edge]
    .ifnb \last
        mov     \last\().d[1], \last_upper
    .endif
        add     \row, \row, tap_stride2
.endm

        // The last ones of a row, which stays where it is.
.macro  last_lower to, row, last, last_upper
        ld1     {\to\().8b}, [\row]
        mov     \last\().d[1], \last_upper
.endm

// With stride 1 a group of 4 outputs needs 6 inputs of each of the 3 rows, top, mid, low; in the
// top one:
//
//   01  23  45     registers
//   0 1 2 3 4 5    inputs
//   +-+-+          output 0
//     +-+-+        output 1
//       +-+-+      output 2
//         +-+-+    output 3
        registers v, 9, top01, top23, top45, mid01
        registers v, 9, mid45, low01, low23, low45
mid23   .req v17

.macro  taps_s1
        mov     row0, next
        smull   t0.8h, top01.8b, tap00.8b
        upper   upper0, row1
        smull2  t1.8h, top01.16b, tap00.16b
        first_lower mid01, row1, edge1
        smull   t2.8h, top23.8b, tap00.8b
        upper   upper1, row1
        smull2  t3.8h, top23.16b, tap00.16b
        smlal2  t0.8h, top01.16b, tap01.16b
        lower   mid23, row1, mid01, upper0
        smlal   t1.8h, top23.8b, tap01.8b
        upper   upper0, row1, right_tap
        smlal2  t2.8h, top23.16b, tap01.16b
        cmp     right_tap, #0
        smlal   t3.8h, top45.8b, tap01.8b
        csel    upper0, padding, upper0, eq
        accumulate sum0, t0, bias
        last_lower mid45, row1, mid23, upper1
        accumulate sum1, t1, bias
        smull   t0.8h, top23.8b, tap02.8b
        smull2  t1.8h, top23.16b, tap02.16b
        saddw   sum2l.4s, biasl.4s, t2.4h
        upper   upper1, row2
        saddw2  sum2h.4s, biash.4s, t2.8h
        first_lower low01, row2, edge2, mid45, upper0
        saddw   sum3l.4s, biasl.4s, t3.4h
        upper   upper0, row2
        saddw2  sum3h.4s, biash.4s, t3.8h
        smull   t2.8h, top45.8b, tap02.8b
        smull2  t3.8h, top45.16b, tap02.16b

        // The third tap of a row shares its sum with the first of the next.
        smlal   t0.8h, mid01.8b, tap10.8b
        lower   low23, row2, low01, upper1
        smlal2  t1.8h, mid01.16b, tap10.16b
        smlal   t2.8h, mid23.8b, tap10.8b
        smlal2  t3.8h, mid23.16b, tap10.16b
        accumulate sum0, t0
        saddw   sum1l.4s, sum1l.4s, t1.4h
        upper   upper1, row2, right_tap
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        smull2  t0.8h, mid01.16b, tap11.16b
        cmp     right_tap, #0
        smull   t1.8h, mid23.8b, tap11.8b
        csel    upper1, padding, upper1, eq
        last_lower low45, row2, low23, upper0
        saddw   sum2l.4s, sum2l.4s, t2.4h
        mov     back, #4
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        subs    back, back, pixels
        saddw   sum3l.4s, sum3l.4s, t3.4h
        csel    right_tap, last_tap, tap_stride, hs
        csel    back, back, xzr, hi
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        msub    next, back, tap_stride, row0
        smull2  t2.8h, mid23.16b, tap11.16b
        msub    row1, back, tap_stride, row1
        smull   t3.8h, mid45.8b, tap11.8b
        smlal   t0.8h, mid23.8b, tap12.8b
        smlal2  t1.8h, mid23.16b, tap12.16b
        smlal   t2.8h, mid45.8b, tap12.8b
        upper   upper0, next
        cmp     pixels, #0
        smlal2  t3.8h, mid45.16b, tap12.16b
        csel    temp0, args, next, eq           // after the last group, nothing is needed
        mov     edge1, row1
        saddw   sum0l.4s, sum0l.4s, t0.4h
        first_lower top01, next, temp0, low45, upper1
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        accumulate sum1, t1

        // The last three taps: a pair and a single product.
        smull   t0.8h, low01.8b, tap20.8b
        smull2  t1.8h, low01.16b, tap20.16b
        accumulate sum2, t2
        accumulate sum3, t3
        smull   t2.8h, low23.8b, tap20.8b
        smull2  t3.8h, low23.16b, tap20.16b
        msub    row2, back, tap_stride, row2
        smlal2  t0.8h, low01.16b, tap21.16b
        upper   upper1, next
        smlal   t1.8h, low23.8b, tap21.8b
        lower   top23, next, top01, upper0
        smlal2  t2.8h, low23.16b, tap21.16b
        smlal   t3.8h, low45.8b, tap21.8b
        accumulate sum0, t0
        accumulate sum1, t1
        smull   t0.8h, low23.8b, tap22.8b
        smull2  t1.8h, low23.16b, tap22.16b
        upper   upper0, next, right_tap
        saddw   sum2l.4s, sum2l.4s, t2.4h
        last_lower top45, next, top23, upper1
        mov     edge2, row2
        cmp     right_tap, #0
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        csel    upper0, padding, upper0, eq
        accumulate sum3, t3
        smull   t2.8h, low45.8b, tap22.8b
        smull2  t3.8h, low45.16b, tap22.16b
        mov     top45.d[1], upper0
        accumulate sum0, t0
        accumulate sum1, t1
        accumulate sum2, t2
        accumulate sum3, t3
.endm

.macro  first_s1
        mov     next, row0
        upper   upper0, next
        first_lower top01, next, back
        upper   upper1, next
        lower   top23, next, top01, upper0
        upper   upper0, next, right_tap
        cmp     right_tap, #0
        last_lower top45, next, top23, upper1
        csel    upper0, padding, upper0, eq
        load_addends q15, q16
        mov     top45.d[1], upper0
.endm

// With stride 2 it needs 9 of each, top, middle, bottom; a group begins with the insertion of 7 in top:
//
//   01  23  45  67  8    registers
//   0 1 2 3 4 5 6 7 8    inputs
//   +-+-+                output 0
//       +-+-+            output 1
//           +-+-+        output 2
//               +-+-+    output 3
        registers v, 9, middle45, middle67, bottom01, top67
        registers v, 15, middle01, middle23, top8
        registers v, 15, bottom45, bottom67, bottom23
middle8 .req v12
bottom8 .req v12

.macro  taps_s2
        mov     row0, next
        smull   t0.8h, top01.8b, tap00.8b
        upper   upper0, row1
        smull   t1.8h, top23.8b, tap00.8b
        last_lower top8, row0, top67, upper1
        smull   t2.8h, top45.8b, tap00.8b
        smlal2  t0.8h, top01.16b, tap01.16b
        first_lower middle01, row1, edge1
        smlal2  t1.8h, top23.16b, tap01.16b
        upper   upper1, row1
        smull   t3.8h, top67.8b, tap00.8b
        smlal2  t2.8h, top45.16b, tap01.16b
        saddw   sum0l.4s, biasl.4s, t0.4h
        lower   middle23, row1, middle01, upper0
        saddw2  sum0h.4s, biash.4s, t0.8h
        upper   upper0, row1
        smlal2  t3.8h, top67.16b, tap01.16b
        accumulate sum1, t1, bias
        lower   middle45, row1, middle23, upper1
        smull   t0.8h, top23.8b, tap02.8b
        upper   upper1, row1
        smull   t1.8h, top45.8b, tap02.8b
        accumulate sum2, t2, bias
        lower   middle67, row1, middle45, upper0
        saddw   sum3l.4s, biasl.4s, t3.4h
        upper   upper0, row2
        saddw2  sum3h.4s, biash.4s, t3.8h
        smull   t2.8h, top67.8b, tap02.8b
        smull   t3.8h, top8.8b, tap02.8b
        last_lower middle8, row1, middle67, upper1

        // The third tap of a row shares its sum with the first of the next.
        smlal   t0.8h, middle01.8b, tap10.8b
        smlal   t1.8h, middle23.8b, tap10.8b
        first_lower bottom01, row2, edge2
        smlal   t2.8h, middle45.8b, tap10.8b
        upper   upper1, row2
        smlal   t3.8h, middle67.8b, tap10.8b
        accumulate sum0, t0
        lower   bottom23, row2, bottom01, upper0
        saddw   sum1l.4s, sum1l.4s, t1.4h
        upper   upper0, row2
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        smull2  t0.8h, middle01.16b, tap11.16b
        smull2  t1.8h, middle23.16b, tap11.16b
        lower   bottom45, row2, bottom23, upper1
        saddw   sum2l.4s, sum2l.4s, t2.4h
        mov     back, #4
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        subs    back, back, pixels
        saddw   sum3l.4s, sum3l.4s, t3.4h
        csel    back, back, xzr, hi
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        msub    next, back, tap_stride2, row0
        smull2  t2.8h, middle45.16b, tap11.16b
        upper   upper1, row2
        smull2  t3.8h, middle67.16b, tap11.16b
        smlal   t0.8h, middle23.8b, tap12.8b
        lower   bottom67, row2, bottom45, upper0
        smlal   t1.8h, middle45.8b, tap12.8b
        upper   upper0, next
        cmp     pixels, #0
        smlal   t2.8h, middle67.8b, tap12.8b
        csel    temp0, args, next, eq           // after the last group, nothing is needed
        smlal   t3.8h, middle8.8b, tap12.8b
        saddw   sum0l.4s, sum0l.4s, t0.4h
        first_lower top01, next, temp0, bottom67, upper1
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        upper   upper1, next
        accumulate sum1, t1

        // The last three taps: a pair and a single product.
        smull   t0.8h, bottom01.8b, tap20.8b
        lower   top23, next, top01, upper0
        smull   t1.8h, bottom23.8b, tap20.8b
        accumulate sum2, t2
        accumulate sum3, t3
        last_lower bottom8, row2, top23, upper1
        smull   t2.8h, bottom45.8b, tap20.8b
        smull   t3.8h, bottom67.8b, tap20.8b
        smlal2  t0.8h, bottom01.16b, tap21.16b
        upper   upper0, next
        smlal2  t1.8h, bottom23.16b, tap21.16b
        msub    row1, back, tap_stride2, row1
        smlal2  t2.8h, bottom45.16b, tap21.16b
        msub    row2, back, tap_stride2, row2
        smlal2  t3.8h, bottom67.16b, tap21.16b
        mov     edge1, row1
        saddw   sum0l.4s, sum0l.4s, t0.4h
        mov     edge2, row2
        lower   top45, next
        saddw2  sum0h.4s, sum0h.4s, t0.8h
        saddw   sum1l.4s, sum1l.4s, t1.4h
        upper   upper1, next
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        tst     facts, #1                       // load_addends
        smull   t0.8h, bottom23.8b, tap22.8b
        csel    temp0, multiplier, slope, eq
        smull   t1.8h, bottom45.8b, tap22.8b
        ldr     temp1, [temp0, #8]
        saddw   sum2l.4s, sum2l.4s, t2.4h
        ldr     d15, [temp0]
        mov     top45.d[1], upper0
        saddw2  sum2h.4s, sum2h.4s, t2.8h
        ldr     upper0, [temp0, #24]
        saddw   sum3l.4s, sum3l.4s, t3.4h
        smull   t2.8h, bottom67.8b, tap22.8b
        saddw2  sum3h.4s, sum3h.4s, t3.8h
        ldr     d16, [temp0, #16]
        mov     addendl.d[1], temp1
        smull   t3.8h, bottom8.8b, tap22.8b
        accumulate sum0, t0
        saddw   sum1l.4s, sum1l.4s, t1.4h
        lower   top67, next, addendh, upper0
        saddw2  sum1h.4s, sum1h.4s, t1.8h
        accumulate sum2, t2
        accumulate sum3, t3
.endm

.macro  first_s2
        mov     next, row0
        upper   upper0, next
        first_lower top01, next, back
        upper   upper1, next
        lower   top23, next, top01, upper0
        upper   upper0, next
        lower   top45, next, top23, upper1
        upper   upper1, next
        lower   top67, next, top45, upper0
.endm

// A single output.
        registers v, 9, i00, i01, i02, i10
        registers v, 24, i11, i12, i20, i21, i22
        registers d, 10, i01d, i02d
        registers d, 24, i11d, i12d
        registers d, 27, i21d, i22d

.macro  depthwise3x3 name, kind, ratio, step
func    n8_\name
        save_all
        save    128, x25, x26, x27, x28
        ldr     tap_stride, [args, #N8_OFF_DW_TAP_STRIDE]
        ldr     weights, [args, #N8_OFF_DW_WEIGHTS]
        ldr     rightw, [args, #N8_OFF_DW_RIGHT]
        ldrb    paddingw, [args, #N8_OFF_DW_IN_ZERO_POINT]
        mov     temp0, #0x0101010101010101
        cmp     rightw, #0
        csel    last_tap, tap_stride, xzr, eq
        mul     padding, padding, temp0
        lsl     tap_stride2, tap_stride, #1
        str     padding, [sp, #160]
        mov     channel, #0

.Lchannels\@:
        ld1     {biasl.4s, biash.4s}, [bias], #32
        .irp    tap, tap00.2d, tap01.2d, tap02.2d, tap10.2d, tap11.2d, tap12.2d, tap20.2d, tap21.2d, \
                     tap22.2d
        ld1r    {\tap}, [weights], #8
        .endr
        ld1     {scalesl.4s, scalesh.4s}, [multiplier]
        ldr     rows, [args, #N8_OFF_DW_ROWS]
        ldr     out_row, [args, #N8_OFF_DW_OUT]

        // A row of outputs. Where column 0 is padding, row0-row2 are where it would be.
.Lrow\@:
        ldr     leftw, [args, #N8_OFF_DW_LEFT]
        ldp     row0, row1, [rows]
        ldr     pixels, [args, #N8_OFF_DW_PIXELS]
        cmp     leftw, #0
        ldr     row2, [rows, #16]
        csel    temp1, tap_stride, xzr, ne
        add     temp0, sp, #160
        sub     temp1, channel, temp1
        add     row0, row0, temp1
        add     row1, row1, temp1
        csel    back, temp0, row0, ne
        add     row2, row2, temp1
        csel    edge1, temp0, row1, ne
        csel    edge2, temp0, row2, ne
        subs    pixels, pixels, #4
        add     out, out_row, channel
        csel    right_tap, last_tap, tap_stride, eq
        b.lo    .Lsingle\@
        first_\kind

        // A group of 4 outputs. After the first, the last one ends with the row: `back` outputs are
        // those of the group before once more.
.Lgroup\@:
        taps_\kind
        round4  \@
        sqxtn   t0.8b, t0.8h
        msub    temp1, back, out_stride, out_stride
        sqxtn   t1.8b, t1.8h
        add     temp0, pixels, back
        sqxtn   t2.8b, t2.8h
        cmp     pixels, #0
        sqxtn   t3.8b, t3.8h
        st1     {t0.8b}, [out], out_stride
        st1     {t1.8b}, [out], out_stride
        sub     pixels, temp0, #4
        st1     {t2.8b}, [out], out_stride
        st1     {t3.8b}, [out], temp1
        b.ne    .Lgroup\@

.Lnext\@:
        // The second row, if there is one.
        ldr     temp0, [args, #N8_OFF_DW_ROWS]
        ldr     temp1, [args, #N8_OFF_DW_OUT_ROW_STRIDE]
        cmp     rows, temp0
        add     rows, temp0, #8 * \ratio
        ccmp    temp1, #0, #4, eq
        add     out_row, out_row, temp1
        b.ne    .Lrow\@
        next_block
        add     channel, channel, #8
        ldr     temp0, [args, #N8_OFF_DW_CHANNELS]
        cmp     channel, temp0
        b.lo    .Lchannels\@
        restore 128, x25, x26, x27, x28
        restored x25, x26, x27, x28
        leave_all

        // Fewer than 4. The five products that go to int32 are independent of one another.
.Lsingle\@:
        load_addends q15, q16
        add     pixels, pixels, #4
1:      ldr     i01d, [row0, tap_stride]
        ldr     i11d, [row1, tap_stride]
        ldr     i21d, [row2, tap_stride]
        ld1     {i00.8b}, [back]
        ld1     {i10.8b}, [edge1]
        ld1     {i20.8b}, [edge2]
        cmp     pixels, #1
        ccmp    last_tap, #0, #0, eq
        b.eq    5f
        ldr     i02d, [row0, tap_stride2]
        ldr     i12d, [row1, tap_stride2]
        ldr     i22d, [row2, tap_stride2]
2:      add     row0, row0, \step
        add     row1, row1, \step
        add     row2, row2, \step
        mov     back, row0
        mov     edge1, row1
        mov     edge2, row2
        smull   t0.8h, i00.8b, tap00.8b
        smull   t1.8h, i02.8b, tap02.8b
        smull   t2.8h, i11.8b, tap11.8b
        smull   t3.8h, i20.8b, tap20.8b
        smlal   t0.8h, i01.8b, tap01.8b
        smlal   t1.8h, i10.8b, tap10.8b
        smlal   t2.8h, i12.8b, tap12.8b
        smlal   t3.8h, i21.8b, tap21.8b
        accumulate sum0, t0, bias
        smull   t0.8h, i22.8b, tap22.8b
        accumulate sum0, t1
        add     temp0, args, #N8_OFF_DW_LO
        add     temp1, args, #N8_OFF_DW_HI
        accumulate sum0, t2
        ld1r    {v17.8b}, [temp0]               // the int8 limits
        ld1r    {v9.8b}, [temp1]
        accumulate sum0, t3
        accumulate sum0, t0
        tbz     facts, #0, 4f
        mov     t0.16b, addendl.16b
        mov     t1.16b, addendh.16b
        fmla    t0.4s, sum0l.4s, scalesl.4s
        fmla    t1.4s, sum0h.4s, scalesh.4s
        uzp1    t0.8h, t0.8h, t1.8h
3:      sqxtn   t0.8b, t0.8h
        smax    t0.8b, t0.8b, v17.8b
        smin    t0.8b, t0.8b, v9.8b
        st1     {t0.8b}, [out], out_stride
        subs    pixels, pixels, #1
        b.ne    1b
        b       .Lnext\@

4:      bl      n8_depthwise_round4
        b       3b

        // The last tap is padding.
5:      .irp    input, i02d, i12d, i22d
        ldr     \input, [sp, #160]
        .endr
        b       2b
        round4_rare \@
endfunc n8_\name
.endm

depthwise3x3 depthwise3x3s1_s8_neon, s1, 1, tap_stride
depthwise3x3 depthwise3x3s2_s8_neon, s2, 2, tap_stride2

// By dot products -----------------------------------------------------------------------------
//
// A group is 2 neighbouring outputs of 2 rows, so that inputs are brought together once for all
// outputs that see them:
//
//   first row of outputs    sum0 v22 v23    sum1 v24 v25        channels 0-3, 4-7
//   second                  sum2 v26 v27    sum3 v28 v29
//
//   weights      v0-v11                     multipliers v30 v31
//   inputs       v12-v16, v18-v21
//
// Where a row has an odd number of outputs, the inputs that only a last group's second outputs see
// are others once more, and those outputs are not stored.
        registers x, 4, row3, row4, column0, column1
        registers x, 10, column_step, out0
        registers x, 20, out1, outputs, next_weights, block_channel
        registers v, 30, scale0, scale1
flag     .req x17
flagw    .req w17

// The sums of a group begin with the biases, or what (5d) has in their place.
.macro  begin_sums
        ldp     q22, q23, [sp, #128]
        ldp     q24, q25, [sp, #128]
        ldp     q26, q27, [sp, #128]
        ldp     q28, q29, [sp, #128]
.endm

// Stride 1: four rows of a column are brought together, by channels: one dot product is a column of
// an output, with weights w0 w1 w2 0 of the first row, 0 w0 w1 w2 of the second. A column serves
// three neighbouring outputs: a group has two columns from the one before and adds two.
//
//   weights of a column    w w w 0: v0 v1, v2 v3, v4 v5    0 w w w: v6 v7, v8 v9, v10 v11
//   columns                of channels 0-3 and 4-7: v12 v13 and v14 v15, coming in: v18-v21
        registers x, 8, edge, last
        // edge: outputs of the row that are left where one sees padding
        // last: the last column that is not padding
edgew   .req w8

// The column at `x`, brought together in `a` and `ah`.
.macro  load_column x, a, ah
        ldr     d18, [row0, \x]
        ldr     d19, [row1, \x]
        ldr     d20, [row2, \x]
        ldr     d21, [row3, \x]
        zip1    v18.16b, v18.16b, v19.16b
        zip1    v20.16b, v20.16b, v21.16b
        couple  zip, \a\().8h, \ah\().8h, v18.8h, v20.8h
.endm

// A column of padding, in `a` and `ah`.
.macro  padded  a, ah
        spread  \a\().16b, N8_OFF_DW_IN_ZERO_POINT, temp0
        mov     \ah\().16b, \a\().16b
.endm

.macro  s1_weights
        ld1     {v18.8b, v19.8b, v20.8b}, [next_weights], #24
        ld1     {v22.8b, v23.8b, v24.8b}, [next_weights], #24
        movi    v21.16b, #0
        ld1     {v25.8b, v26.8b, v27.8b}, [next_weights], #24
        zip1    v18.16b, v18.16b, v22.16b
        zip1    v19.16b, v19.16b, v23.16b
        zip1    v20.16b, v20.16b, v24.16b
        each    zip1, v21.16b, v25.16b, v26.16b, v27.16b
        couple  zip, v0.8h, v1.8h, v18.8h, v25.8h
        couple  zip, v2.8h, v3.8h, v19.8h, v26.8h
        couple  zip, v4.8h, v5.8h, v20.8h, v27.8h
        shl     v6.4s, v0.4s, #8
        shl     v7.4s, v1.4s, #8
        shl     v8.4s, v2.4s, #8
        shl     v9.4s, v3.4s, #8
        shl     v10.4s, v4.4s, #8
        shl     v11.4s, v5.4s, #8
.endm

.macro  s1_first_columns id
        ldr     edgew, [args, #N8_OFF_DW_RIGHT]
        sub     temp0, outputs, edge
        madd    last, temp0, column_step, column_step
        add     last, last, column0
        cbnz    flag, .Lleft\id
        load_column column0, v12, v13
.Lprimed\id:
        add     column1, column0, column_step
        load_column column1, v14, v15
        add     column0, column1, column_step
        cmp     column0, last
        csel    column0, column0, last, lo
        add     column1, column0, column_step
        cmp     column1, last
        csel    column1, column1, last, lo
.endm

.macro  s1_group id
        ldr     d18, [row0, column0]
        sdot    sum0l.4s, v12.16b, v0.16b
        ldr     d19, [row1, column0]
        sdot    sum0h.4s, v13.16b, v1.16b
        ldr     d20, [row2, column0]
        sdot    sum2l.4s, v12.16b, v6.16b
        ldr     d21, [row3, column0]
        sdot    sum2h.4s, v13.16b, v7.16b
        sdot    sum1l.4s, v14.16b, v0.16b
        sdot    sum1h.4s, v15.16b, v1.16b
        zip1    v18.16b, v18.16b, v19.16b
        ldr     d19, [row0, column1]
        sdot    sum3l.4s, v14.16b, v6.16b
        zip1    v20.16b, v20.16b, v21.16b
        ldr     d21, [row1, column1]
        sdot    sum3h.4s, v15.16b, v7.16b
        couple  zip, v12.8h, v13.8h, v18.8h, v20.8h
        cmp     outputs, edge
        b.eq    .Lright_first\id
.Lfirst\id:
        ldr     d18, [row2, column1]
        sdot    sum0l.4s, v14.16b, v2.16b
        ldr     d20, [row3, column1]
        sdot    sum0h.4s, v15.16b, v3.16b
        add     column0, column1, column_step
        sdot    sum2l.4s, v14.16b, v8.16b
        cmp     column0, last
        csel    column0, column0, last, lo
        sdot    sum2h.4s, v15.16b, v9.16b
        add     column1, column0, column_step
        sdot    sum1l.4s, v12.16b, v2.16b
        cmp     column1, last
        csel    column1, column1, last, lo
        sdot    sum1h.4s, v13.16b, v3.16b
        zip1    v19.16b, v19.16b, v21.16b
        zip1    v18.16b, v18.16b, v20.16b
        sdot    sum0l.4s, v12.16b, v4.16b
        sdot    sum0h.4s, v13.16b, v5.16b
        couple  zip, v14.8h, v15.8h, v19.8h, v18.8h
        cmp     outputs, edge, lsl #1
        b.eq    .Lright_second\id
.Lsecond\id:
        ldp     q18, q20, [sp, #160]
        sdot    sum2l.4s, v12.16b, v10.16b
        sdot    sum2h.4s, v13.16b, v11.16b
        sdot    sum3l.4s, v12.16b, v8.16b
        sdot    sum3h.4s, v13.16b, v9.16b
        ldp     q21, q19, [sp, #160]
        sdot    sum1l.4s, v14.16b, v4.16b
        sdot    sum1h.4s, v15.16b, v5.16b
        sdot    sum3l.4s, v14.16b, v10.16b
        sdot    sum3h.4s, v15.16b, v11.16b
.endm

.macro  s1_padding id
        // Columns of padding.
.Lleft\id:
        padded  v12, v13
        b       .Lprimed\id
.Lright_first\id:
        padded  v12, v13
        b       .Lfirst\id
.Lright_second\id:
        padded  v14, v15
        b       .Lsecond\id
.endm

// Stride 2: the columns 1 and 2, 3 and 4, ... of a row are brought together in pairs, by channels,
// and then two pairs in fours, each of which is multiplied at once:
//
//   T   of rows 0 and 1    0 w00 0 w10    of output 0, whose column 0 ends the pair before
//                          w01 w02 w11 w12
//   M   of row 2           0 w20 w21 w22    0 w00 w01 w02    the pair before and this one
//   B   of rows 3 and 4    0 w10 0 w20      w11 w12 w21 w22
//
// The first row of outputs is of T and M, the second of M and B. A group has the first fours of T
// and B and a pair of M from the one before.
//
//   weights    T: v0 v1, v2 v3    M: v4 v5, v6 v7    B: v8 v9, v10 v11    in the order of above,
//              channels 0-3 and 4-7
//   inputs     T v12 v13, B v14 v15, pair of M v16; others come and go
        registers x, 8, column2, column3

// The first column, alone, as the second of a pair of rows `a` and `b`.
.macro  first_column a, b, to, toh
        ldr     d18, [\a, column0]
        ldr     d19, [\b, column0]
        zip1    v18.16b, v21.16b, v18.16b
        zip1    v19.16b, v21.16b, v19.16b
        couple  zip, \to\().8h, \toh\().8h, v18.8h, v19.8h
.endm

.macro  s2_weights
        // Pairs of weights: 0 w00, w01 w02, ... in v12-v14 and v18-v20, then fours.
        movi    v21.16b, #0
        ld1     {v12.8b, v13.8b, v14.8b}, [next_weights], #24
        ld1     {v15.8b, v16.8b, v17.8b}, [next_weights], #24
        ld1     {v18.8b, v19.8b, v20.8b}, [next_weights], #24
        zip1    v12.16b, v21.16b, v12.16b
        zip1    v13.16b, v13.16b, v14.16b
        zip1    v15.16b, v21.16b, v15.16b
        zip1    v16.16b, v16.16b, v17.16b
        zip1    v18.16b, v21.16b, v18.16b
        zip1    v19.16b, v19.16b, v20.16b
        couple  zip, v0.8h, v1.8h, v12.8h, v15.8h
        couple  zip, v2.8h, v3.8h, v13.8h, v16.8h
        couple  zip, v4.8h, v5.8h, v18.8h, v19.8h
        couple  zip, v6.8h, v7.8h, v12.8h, v13.8h
        couple  zip, v8.8h, v9.8h, v15.8h, v18.8h
        couple  zip, v10.8h, v11.8h, v16.8h, v19.8h
.endm

.macro  s2_first_columns id
        ldr     row4, [temp0, #32]
        cbnz    flag, .Lleft\id
        first_column row0, row1, v12, v13
        first_column row3, row4, v14, v15
        ldr     d16, [row2, column0]
        zip1    v16.16b, v21.16b, v16.16b
.Lprimed\id:
        add     column0, column0, column_step
        add     column1, column0, column_step
        add     column2, column1, column_step
        add     column3, column2, column_step
        cmp     outputs, #1
        csel    column2, column1, column2, eq
        csel    column3, column1, column3, eq
.endm

.macro  s2_group id
        ldr     d18, [row0, column0]
        sdot    sum0l.4s, v12.16b, v0.16b
        ldr     d19, [row0, column1]
        sdot    sum0h.4s, v13.16b, v1.16b
        ldr     d20, [row1, column0]
        sdot    sum2l.4s, v14.16b, v8.16b
        ldr     d21, [row1, column1]
        sdot    sum2h.4s, v15.16b, v9.16b
        ldr     d14, [row2, column0]
        zip1    v18.16b, v18.16b, v19.16b
        ldr     d15, [row2, column1]
        ldr     d19, [row3, column0]
        zip1    v20.16b, v20.16b, v21.16b
        ldr     d21, [row3, column1]
        couple  zip, v12.8h, v13.8h, v18.8h, v20.8h
        ldr     d18, [row4, column0]
        zip1    v14.16b, v14.16b, v15.16b
        ldr     d20, [row4, column1]
        sdot    sum0l.4s, v12.16b, v2.16b
        sdot    sum0h.4s, v13.16b, v3.16b
        sdot    sum1l.4s, v12.16b, v0.16b
        sdot    sum1h.4s, v13.16b, v1.16b
        couple  zip, v15.8h, v16.8h, v16.8h, v14.8h
        zip1    v19.16b, v19.16b, v21.16b
        ldr     d21, [row0, column2]
        zip1    v18.16b, v18.16b, v20.16b
        ldr     d20, [row0, column3]
        sdot    sum0l.4s, v15.16b, v4.16b
        sdot    sum0h.4s, v16.16b, v5.16b
        sdot    sum2l.4s, v15.16b, v6.16b
        sdot    sum2h.4s, v16.16b, v7.16b
        zip1    v12.8h, v19.8h, v18.8h
        ldr     d15, [row1, column2]
        zip2    v13.8h, v19.8h, v18.8h
        ldr     d16, [row1, column3]
        zip1    v21.16b, v21.16b, v20.16b
        ldr     d18, [row2, column2]
        sdot    sum2l.4s, v12.16b, v10.16b
        sdot    sum2h.4s, v13.16b, v11.16b
        zip1    v15.16b, v15.16b, v16.16b
        ldr     d16, [row2, column3]
        sdot    sum3l.4s, v12.16b, v8.16b
        sdot    sum3h.4s, v13.16b, v9.16b
        ldr     d19, [row3, column2]
        zip1    v12.8h, v21.8h, v15.8h
        ldr     d20, [row3, column3]
        zip2    v13.8h, v21.8h, v15.8h
        ldr     d21, [row4, column2]
        zip1    v16.16b, v18.16b, v16.16b
        ldr     d18, [row4, column3]
        sdot    sum1l.4s, v12.16b, v2.16b
        sdot    sum1h.4s, v13.16b, v3.16b
        couple  zip, v15.8h, v14.8h, v14.8h, v16.8h
        zip1    v19.16b, v19.16b, v20.16b
        sdot    sum1l.4s, v15.16b, v4.16b
        sdot    sum1h.4s, v14.16b, v5.16b
        zip1    v18.16b, v21.16b, v18.16b
        sdot    sum3l.4s, v15.16b, v6.16b
        sdot    sum3h.4s, v14.16b, v7.16b
        couple  zip, v14.8h, v15.8h, v19.8h, v18.8h
        ldp     q18, q20, [sp, #160]
        add     column0, column3, column_step
        sdot    sum3l.4s, v14.16b, v10.16b
        sdot    sum3h.4s, v15.16b, v11.16b
        ldp     q21, q19, [sp, #160]
        add     column1, column0, column_step
        add     column2, column1, column_step
        add     column3, column2, column_step
        cmp     outputs, #3
        csel    column2, column1, column2, eq
        csel    column3, column1, column3, eq
.endm

.macro  s2_padding id
        // The first column is padding.
.Lleft\id:
        spread  v16.16b, N8_OFF_DW_IN_ZERO_POINT, temp0
        zip1    v16.16b, v21.16b, v16.16b
        fill    mov, v16.16b, v12.16b, v13.16b, v14.16b, v15.16b
        b       .Lprimed\id
.endm

// `kind`: of the macros above. A group leaves the addends of (5d) in v18, v20 and v21, v19.
//
// Bounds: by (5d) results fit 16 bits; sqxtn saturates.
.macro  depthwise3x3_dotprod name, kind
func    n8_\name, DOTPROD
        save_all
        ldr     column_step, [args, #N8_OFF_DW_TAP_STRIDE]
        ldr     next_weights, [args, #N8_OFF_DW_WEIGHTS]
        mov     block_channel, #0

.Lchannels\@:
        \kind\()_weights

        // What a block needs beside its weights. `column0` is the first output's first column; it
        // is padding if `flag` is 1.
        ld1     {v12.4s, v13.4s}, [bias], #32
        load_addends q16, q17
        ldr     temp0, [args, #N8_OFF_DW_ROWS]
        mov     sum0l.16b, v12.16b
        ldr     out0, [args, #N8_OFF_DW_OUT]
        mov     sum0h.16b, v13.16b
        ldr     out1, [args, #N8_OFF_DW_OUT_ROW_STRIDE]
        mov     sum1l.16b, v12.16b
        ldp     row0, row1, [temp0]
        mov     sum1h.16b, v13.16b
        ldr     outputs, [args, #N8_OFF_DW_PIXELS]
        mov     sum2l.16b, v12.16b
        ldr     flagw, [args, #N8_OFF_DW_LEFT]
        mov     sum2h.16b, v13.16b
        add     out0, out0, block_channel
        mov     sum3l.16b, v12.16b
        add     out1, out1, out0
        mov     sum3h.16b, v13.16b
        ldp     row2, row3, [temp0, #16]
        stp     q12, q13, [sp, #128]
        stp     q16, q17, [sp, #160]
        msub    column0, flag, column_step, block_channel
        ldp     q30, q31, [multiplier]
        \kind\()_first_columns \@

        // The columns of the group before are multiplied while new ones are loaded.
.Lgroup\@:
        \kind\()_group \@

        // The sums are requantized, and stored.
        tbz     facts, #0, .Lany\@
        fmla    v18.4s, sum0l.4s, scale0.4s
        fmla    v20.4s, sum0h.4s, scale1.4s
        ldp     q22, q23, [sp, #160]
        fmla    v21.4s, sum2l.4s, scale0.4s
        fmla    v19.4s, sum2h.4s, scale1.4s
        ldp     q26, q27, [sp, #160]
        uzp1    t0.8h, v18.8h, v20.8h
        fmla    v22.4s, sum1l.4s, scale0.4s
        fmla    v23.4s, sum1h.4s, scale1.4s
        uzp1    t2.8h, v21.8h, v19.8h
        sqxtn   t0.8b, t0.8h
        ldp     q24, q25, [sp, #128]
        fmla    v26.4s, sum3l.4s, scale0.4s
        fmla    v27.4s, sum3h.4s, scale1.4s
        sqxtn   t2.8b, t2.8h
        uzp1    t1.8h, v22.8h, v23.8h
        ldp     q22, q23, [sp, #128]
        uzp1    sum3h.8h, v26.8h, v27.8h
        ldp     q26, q27, [sp, #128]
        sqxtn2  t0.16b, t1.8h
        sqxtn2  t2.16b, sum3h.8h
        tbnz    facts, #1, .Llimits\@
.Lclamped\@:
        ldp     q28, q29, [sp, #128]
.Lstore\@:
        subs    outputs, outputs, #2
        st1     {t2.8b}, [out1], out_stride
        st1     {t0.8b}, [out0], out_stride
        b.lo    .Lnext\@
        st1     {t2.d}[1], [out1], out_stride
        st1     {t0.d}[1], [out0], out_stride
        b.hi    .Lgroup\@

.Lnext\@:
        next_block
        add     block_channel, block_channel, #8
        ldr     temp0, [args, #N8_OFF_DW_CHANNELS]
        cmp     block_channel, temp0
        b.lo    .Lchannels\@
        leave_all

        // Low bytes of the int32 limits are the int8 limits.
.Llimits\@:
        spread  t1.16b, N8_OFF_DW_LO, temp0
        spread  t3.16b, N8_OFF_DW_HI, temp0
        smax    t0.16b, t0.16b, t1.16b
        smax    t2.16b, t2.16b, t1.16b
        smin    t0.16b, t0.16b, t3.16b
        smin    t2.16b, t2.16b, t3.16b
        b       .Lclamped\@

.Lany\@:
        bl      n8_depthwise_round4
        sqxtn   t0.8b, t0.8h
        sqxtn   t2.8b, t2.8h
        sqxtn2  t0.16b, t1.8h
        sqxtn2  t2.16b, t3.8h
        begin_sums
        tbnz    facts, #1, .Llimits\@
        b       .Lstore\@
        \kind\()_padding \@
endfunc n8_\name
.endm

depthwise3x3_dotprod depthwise3x3s1_s8_dotprod, s1
depthwise3x3_dotprod depthwise3x3s2_s8_dotprod, s2
