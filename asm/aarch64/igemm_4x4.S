// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM in tiles of 4 pixels x 4 channels, in two orders: for out-of-order cores, which begin
// one multiplication in a cycle, and one load of any width, and in groups for the Cortex-A53:
//
//   acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[t][p][k] * w[n][t][k]     (3)(12)
//   s32   out[p][n] = acc''[p][n]
//   f32   out[p][n] = fadd(fmul((float) acc''[p][n], multiplier[n]), bias_f32[n])              (4)
//   s8    v = fmul((float) acc''[p][n], multiplier[n]),
//   add   v = fadd(that, fmul((float)(residual[p][n] - residual_zero_point), residual_scale))  (6)
//         leaky by slope[n] if there is one                                                 (5b)
//         out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                     (5)
//
//   void n8_igemm_s8_..._4x4(const struct n8_igemm_args *args);
//   void n8_igemm_s8_..._4x4_a53(const struct n8_igemm_args *args);
//
//                     wt0 v4   wt1 v5   wt2 v6   wt3 v7      16 bytes of 4 channels
//          a0 v0      v16     v17     v18     v19
//          a1 v1      v20     v21     v22     v23        each accumulator holds 4 partial
//          a2 v2      v24     v25     v26     v27        sums of one pixel and one channel
//          a3 v3      v28     v29     v30     v31
//          16 bytes of 4 pixels; products go through v8-v15. In groups, through v8-v11; v12-v15 are
//          the next 16 bytes of the pixels, and wt0-wt3 32 bytes of two channels, which take turns.
//
// Bounds: |a| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products that
//   share an int16 lane reach at most 32640; sadalp empties the lane before a third, but where a
//   mark says that four fit. int32 is proved by (12).
// On arrival at the epilogue: sum0-sum3 (.4s); pixels and channels left (over 4 where tiles
//   follow); out, residual: this tile's; offset = 4 * its first channel. v0-v7, ptr0-ptr3,
//   weights, cursor, left and deep are the next tile's. Free are tmp0-tmp3, v8-v15 and what is no sum of
//   v16-v31.
// Stack: 144 bytes, callee-saved registers.
// The layout of all arrays: runtime/kernel.h, whose demands runtime/conv proves.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, ptr0, ptr1, ptr2, ptr3, weights, panel, cursor
        registers x, 8, tmp0, left, tmp1, taps_left, tmp2, channels, pixels, tmp3
        registers x, 16, out, out_stride
        registers x, 19, panel_marks, multiplier, marks
        registers x, 24, residual, residual_stride, offset, high0, high1
        registers v, 0, a0, a1, a2, a3, wt0, wt1, wt2, wt3
        registers v, 8, t0, t1, t2, t3, u0, u1, u2, u3
        registers v, 16, acc00, acc01, acc02, acc03, acc10, acc11, acc12, acc13
        registers v, 24, acc20, acc21, acc22, acc23, acc30, acc31, acc32, acc33
        registers d, 0, a0d, a1d, a2d, a3d, wt0d, wt1d, wt2d, wt3d
        registers d, 12, u0d, u1d, u2d, u3d
        registers q, 4, wt0q, wt1q, wt2q, wt3q
kind      .req x23              // of the kernel, as below
deep      .req x22              // in groups: the word of this one, as below
upper     .req x8
low       .req x10              // numbers of blocks
up        .req x12
next_deep .req x15
rows_left .req x12              // at the edge
sum0      .req v16
sum1      .req v20
sum2      .req v24
sum3      .req v28

// What `kind` says.
#define ADD     1       // adds a residual
#define FLOATS  3       // stores floats
#define CLAMPS  4       // lo and hi are not those of saturation
#define GROUPS  8       // sums by groups, for the Cortex-A53
#define WORDS   0x13    // stores the sums
#define START   0x20    // the channels have a start (5d)

#define SAVED           D8_TO_D15, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28

.macro  zero
        .irp    sum, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
        movi    d\sum, #0
        .endr
.endm

// An operation of the sums with one vector, or with one for each.
.macro  on_sums op, a, b, c, d
        \op     sum0.4s, sum0.4s, \a\().4s
        \op     sum2.4s, sum2.4s, \c\().4s
        \op     sum1.4s, sum1.4s, \b\().4s
        \op     sum3.4s, sum3.4s, \d\().4s
.endm

        // The products of 16 bytes of a pixel in p0-p3, and its next 16, while those of the pixel
        // before, q0-q3, are added to its sums; beside the last pixel's, the next weights.
.macro  multiply a, ptr, p0, p1, p2, p3, q0, q1, q2, q3, s0, s1, s2, s3
        smull   \p0\().8h, \a\().8b, wt0.8b
        smull   \p1\().8h, \a\().8b, wt1.8b
        add_to  \s0, \q0
        smull   \p2\().8h, \a\().8b, wt2.8b
        smull   \p3\().8h, \a\().8b, wt3.8b
        add_to  \s1, \q1
        smlal2  \p0\().8h, \a\().16b, wt0.16b
        smlal2  \p1\().8h, \a\().16b, wt1.16b
    .ifc \ptr, ptr3
        ldp     wt0q, wt1q, [weights], #32
    .endif
        add_to  \s2, \q2
        smlal2  \p2\().8h, \a\().16b, wt2.16b
        smlal2  \p3\().8h, \a\().16b, wt3.16b
    .ifc \ptr, ptr3
        ldp     wt2q, wt3q, [weights], #32
    .endif
        add_to  \s3, \q3
        ld1     {\a\().16b}, [\ptr], #16
.endm

.macro  add_to  s, q
    .ifnb \s
        sadalp  \s\().4s, \q\().8h
    .endif
.endm

// At the end of a tap, from here on loads are of the next one; at the end of the last tap, of the
// next tile, after the last tile of the first again, which may be read and is not used.
.macro  end_tap a, b
        \a
        subs    taps_left, taps_left, #1
        ldr     left, [args, #N8_OFF_IG_DEPTH]
        \b
        b.ne    7f
        cmp     pixels, #4
        b.hi    6f
        ldr     cursor, [args, #N8_OFF_IG_ROWS]
        cmp     channels, #4
        csel    panel, weights, panel, hi
        csel    panel_marks, marks, panel_marks, hi
6:      mov     weights, panel
        mov     marks, panel_marks
7:
.endm

.macro  next_step size
        subs    left, left, #\size
        b.hi    8f
        end_tap
        ldp     ptr0, ptr1, [cursor], #16
        ldp     ptr2, ptr3, [cursor], #16
8:
.endm

.macro  load_first
        ld1     {a0.16b}, [ptr0], #16
        ldp     wt0q, wt1q, [weights], #32
        ldp     wt2q, wt3q, [weights], #32
        ld1     {a1.16b}, [ptr1], #16
        ld1     {a2.16b}, [ptr2], #16
        ld1     {a3.16b}, [ptr3], #16
.endm

// The sums of one tile of pixels: steps of 16 bytes, each of which loads the next step's operands.
.macro  sums
        zero
1:      next_step 16
        multiply a0, ptr0, t0, t1, t2, t3
        multiply a1, ptr1, u0, u1, u2, u3, t0, t1, t2, t3, acc00, acc01, acc02, acc03
        multiply a2, ptr2, t0, t1, t2, t3, u0, u1, u2, u3, acc10, acc11, acc12, acc13
        multiply a3, ptr3, u0, u1, u2, u3, t0, t1, t2, t3, acc20, acc21, acc22, acc23
        sadalp  acc30.4s, u0.8h
        sadalp  acc31.4s, u1.8h
        sadalp  acc32.4s, u2.8h
        sadalp  acc33.4s, u3.8h
        cbnz    taps_left, 1b
.endm

// The same in groups of 32 bytes, ordered for the Cortex-A53 (asm.h): the products of four pixels and
// one channel after the other, each of which is summed deep or not. The word of a group has 16 bits for
// each of its four blocks of 8 bytes: a channel's mark, and above it the number of the block in the
// rows, which costs no cycle beside vector instructions. A group begins and ends with its
// first 16 bytes in a0-a3 and wt0, of a2 and a3 the high half in high0 and high1; then `weights` are
// the next channel's first 16 bytes, `upper` this one's second.
.macro  numbers word, block
        ubfx    low, \word, #16 * \block + 1, #15
        ubfx    up, \word, #16 * \block + 17, #15
.endm

#define BLOCKS(...)     HALVES(__VA_ARGS__, low, up)

.macro  load_first_in_order
        ldr     deep, [marks], #8
        numbers deep, 0
        halves  wt0d, weights
        other_half wt0d, weights, , high1
        halves  a0d, ptr0, , , low
        other_half a0d, ptr0, , high0, , up
        halves  a1d, ptr1, wt0, high1, low
        other_half a1d, ptr1, , high1, , up
        halves  a2d, ptr2, a0, high0, low
        other_half a2d, ptr2, , high0, , up
        halves  a3d, ptr3, a1, high1, low
        other_half a3d, ptr3, , high1, , up
.endm

// The products of the first 16 bytes with a channel's weights, and loads before them.
.macro  first_half w, l0, l1, l2, l3, l4, l5, l6, l7
        products smull, 8b, \w, a0, a1, a2, a3, "\l0", "\l1", "\l2", "\l3"
        products smlal2, 16b, \w, a0, a1, a2, a3, "\l4", "\l5", "\l6", "\l7"
.endm

// Sums of a channel at the end of a tap.
.macro  sum_up_last add, s0, s1, s2, s3
        end_tap "\add \s0\().4s, v8.8h", "\add \s1\().4s, v9.8h"
        \add    \s2\().4s, t2.8h
        ldr     ptr0, [cursor]
        ldr     ptr1, [cursor, #8]
        \add    \s3\().4s, t3.8h
        ldr     ptr2, [cursor, #16]
        ldr     ptr3, [cursor, #24]
        add     cursor, cursor, #32
.endm

// Those of the third channel, after whose loads the tap may end: the flags are of what is left of it.
// After those of the last channel the next group's second blocks are loaded.
.macro  sum_up_channel number, add, s0, s1, s2, s3
    .if \number == 2
        b.hi    8f
        sum_up_last \add, \s0, \s1, \s2, \s3
        b       9f
8:      sum_up  \add, \s0, \s1, \s2, \s3
9:      ldr     next_deep, [marks], #8
    .elseif \number == 3
        \add    \s0\().4s, t0.8h
        ubfx    low, next_deep, #33, #15
        \add    \s1\().4s, t1.8h
        ubfx    up, next_deep, #49, #15
        \add    \s2\().4s, t2.8h
        mov     deep, next_deep
        \add    \s3\().4s, t3.8h
    .else
        sum_up  \add, \s0, \s1, \s2, \s3
    .endif
.endm

// The second 16 bytes of a group: four products in a lane, or else two, at the label `way`\()number;
// from there back to `back`\()number.
.macro  second_half way, back, number, w, add, s0, s1, s2, s3, l0, l1
        tbz     deep, #16 * \number, \way\number\()f
        products smlal, 8b, \w, u0, u1, u2, u3, "\l0", "\l1"
        products smlal2, 16b, \w, u0, u1, u2, u3
        sum_up_channel \number, \add, \s0, \s1, \s2, \s3
\back\number:
.endm

.macro  by_two  way, back, number, w, add, s0, s1, s2, s3, l0, l1
\way\number:
        sum_up  \add, \s0, \s1, \s2, \s3
        products smull, 8b, \w, u0, u1, u2, u3, "\l0", "\l1"
        products smlal2, 16b, \w, u0, u1, u2, u3
        sum_up_channel \number, sadalp, \s0, \s1, \s2, \s3
        b       \back\number\()b
.endm

#define LOAD_3  HALVES(wt0d, weights, wt2, high1)
#define LOAD_4  HALVES(wt2d, weights, wt0, high1)
#define LOAD_A  BLOCKS(a3d, ptr3, a0, high1), BLOCKS(a2d, ptr2, a1, high0)

.macro  group   way, back, add
        first_half wt0, HALVES(wt1d, upper, a2, high0), BLOCKS(u0d, ptr0, a3, high1), BLOCKS(u1d, ptr1, wt1, high0), \
                 BLOCKS(u2d, ptr2, u0, high1), BLOCKS(u3d, ptr3, u1, high0), HALVES(wt2d, weights, u2, high1), \
                 HALVES(wt3d, upper, u3, high0)
        second_half \way, \back, 0, wt1, \add, acc00, acc10, acc20, acc30, LOAD_3
        first_half wt2, HALVES(wt1d, upper, wt3, high0)
        second_half \way, \back, 1, wt3, \add, acc01, acc11, acc21, acc31, LOAD_4
        subs    left, left, #32
        products smull, 8b, wt0, a0, a1, a2, a3, HALVES(wt3d, upper, wt1, high0)
        mov     weights, upper
        ins     wt2.d[1], high1
        add     upper, upper, #64
        products smlal2, 16b, wt0, a0, a1, a2, a3
        second_half \way, \back, 2, wt1, \add, acc02, acc12, acc22, acc32
        cmp     left, #16
        products smull, 8b, wt2, a0, a1, a2, a3, HALVES(wt0d, weights, wt3, high0)
        numbers next_deep, 0
        products smlal2, 16b, wt2, a0, a1, a2, a3, , BLOCKS(a0d, ptr0, , high1), BLOCKS(a1d, ptr1, wt0, high0)
        second_half \way, \back, 3, wt3, \add, acc03, acc13, acc23, acc33, LOAD_A
.endm

// What of it is summed by two.
.macro  ways    way, back, add
        by_two  \way, \back, 0, wt1, \add, acc00, acc10, acc20, acc30, LOAD_3
        by_two  \way, \back, 1, wt3, \add, acc01, acc11, acc21, acc31, LOAD_4
        by_two  \way, \back, 2, wt1, \add, acc02, acc12, acc22, acc32
        by_two  \way, \back, 3, wt3, \add, acc03, acc13, acc23, acc33, LOAD_A
.endm

// The last 16 bytes of a tap.
.macro  group_short add
        first_half wt0, HALVES(wt2d, weights, a2, high0), HALVES(wt1d, weights, a3, high1), HALVES(wt3d, weights, wt2, high0)
        sum_up  \add, acc00, acc10, acc20, acc30
        first_half wt2
        ins     wt1.d[1], high1
        sum_up_last \add, acc01, acc11, acc21, acc31
        ldr     deep, [marks], #8
        first_half wt1, HALVES(wt0d, weights, wt3, high0)
        numbers deep, 0
        sum_up  \add, acc02, acc12, acc22, acc32
        first_half wt3, , , , , , BLOCKS(a0d, ptr0, wt0, high0), BLOCKS(a1d, ptr1, , high1), \
                 BLOCKS(a2d, ptr2, a0, high0)
        add     upper, weights, #48
        sum_up  \add, acc03, acc13, acc23, acc33, BLOCKS(a3d, ptr3, a1, high1)
        numbers deep, 2
.endm

.macro  sums_in_order
        cmp     left, #16
        add     upper, weights, #48
        numbers deep, 2
        b.eq    .Lshort
.Lgroups:
        group   2, 3, saddlp
        cbz     taps_left, 10f
        b.eq    5f
1:      group   4, 5, sadalp
        cbz     taps_left, 10f
        b.ne    1b
5:      group_short sadalp
        cbz     taps_left, 10f
13:     cmp     left, #16
        b.ne    1b
        b       5b
        ways    2, 3, saddlp
        ways    4, 5, sadalp
.Lshort:
        group_short saddlp
        cbnz    taps_left, 13b
10:
.endm

// The sums of a last tile of one pixel, in steps of 16 bytes for all cores; groups are summed by two. The
// next tile's operands are loaded anew after it.
.macro  sums_of_one
        tbz     kind, #3, 1f
        ldr     wt1q, [weights], #16
        ldp     wt2q, wt3q, [weights], #32
1:      fill    movi, #0, acc00.4s, acc01.4s, acc02.4s, acc03.4s
2:      subs    left, left, #16
        smull   t0.8h, a0.8b, wt0.8b
        smull   t1.8h, a0.8b, wt1.8b
        b.hi    3f
        end_tap
        ldr     ptr0, [cursor], #32
        mov     deep, #0
3:      smull   t2.8h, a0.8b, wt2.8b
        mov     low, #-2
        smull   t3.8h, a0.8b, wt3.8b
        mov     up, #-1
        smlal2  t0.8h, a0.16b, wt0.16b
        add     ptr0, ptr0, #16
        smlal2  t1.8h, a0.16b, wt1.16b
        tbz     kind, #3, 5f
        lsr     deep, deep, #32         // of two blocks one is not the first
        smlal2  t2.8h, a0.16b, wt2.16b
        cbnz    deep, 4f
        ldr     deep, [marks], #8
4:      sub     ptr0, ptr0, #16
        numbers deep, 0
        b       6f
5:      smlal2  t2.8h, a0.16b, wt2.16b
6:      smlal2  t3.8h, a0.16b, wt3.16b
        sum_up  sadalp, acc00, acc01, acc02, acc03, BLOCKS(a0d, ptr0, , high0), HALVES(wt0d, weights, , high1), \
                HALVES(wt1d, weights, a0, high0), HALVES(wt2d, weights, wt0, high1)
        ldr     up, [weights, #8]
        halves  wt3d, weights, wt1, high0
        ins     wt2.d[1], high1
        ins     wt3.d[1], up
        cbnz    taps_left, 2b
.endm

// Reduction: pairwise additions leave the 4 channels of a pixel in one vector. In halves, so that none
// is waited for, come the bias, and beside it what the epilogue needs.
scales  .req v8
zp      .req v15

.macro  reduce
        ldr     tmp0, [args, #N8_OFF_IG_BIAS]
        addp    acc00.4s, acc00.4s, acc01.4s
        addp    acc02.4s, acc02.4s, acc03.4s
        add     tmp0, tmp0, offset
        addp    acc10.4s, acc10.4s, acc11.4s
        ldr     tmp1, [tmp0, #8]
        addp    acc12.4s, acc12.4s, acc13.4s
        ldr     d9, [tmp0]
        addp    acc20.4s, acc20.4s, acc21.4s
        add     tmp3, args, #N8_OFF_IG_ZERO_POINT
        addp    acc22.4s, acc22.4s, acc23.4s
        ldr     tmp0, [tmp2, #8]
        addp    acc30.4s, acc30.4s, acc31.4s
        addp    acc32.4s, acc32.4s, acc33.4s
        ldr     d8, [tmp2]
        ins     v9.d[1], tmp1
        addp    sum0.4s, acc00.4s, acc02.4s
        addp    sum2.4s, acc20.4s, acc22.4s
        addp    sum1.4s, acc10.4s, acc12.4s
        addp    sum3.4s, acc30.4s, acc32.4s
        ld1r    {zp.8h}, [tmp3]
        ins     v8.d[1], tmp0
        ldr     tmp0, [args, #N8_OFF_IG_SLOPE]
        on_sums add, v9, v9, v9, v9
.endm

// Epilogue ------------------------------------------------------------------------------------

// From sums to floats: fmul((float) acc'', multiplier[n]). scvtf rounds to nearest even (7).
        registers v, 9, r_scale, r_zp, r_bytes, r_low, r_high
        registers v, 17, r0, r1, r2
r3      .req v21

.macro  scale
        in_place scvtf, sum0.4s, sum2.4s, sum1.4s, sum3.4s
        on_sums fmul, scales, scales, scales, scales
.endm

// The same, and the residual.
//
// Bounds: |residual - zero point| <= 255 fits int16.
.macro  scale_add
        // The residual of pixels that do not exist is read from the last one that does; the
        // bytes after the last channel are slack.
        cmp     pixels, #2
        add     tmp1, residual, residual_stride
        csel    tmp1, tmp1, residual, hs
        add     tmp2, tmp1, residual_stride
        csel    tmp2, tmp2, tmp1, hi
        cmp     pixels, #4
        add     tmp3, tmp2, residual_stride
        csel    tmp3, tmp3, tmp2, hs
        ld1     {r_bytes.s}[0], [residual]
        ld1     {r_bytes.s}[1], [tmp1]
        ld1     {r_bytes.s}[2], [tmp2]
        ld1     {r_bytes.s}[3], [tmp3]
        add     tmp1, args, #N8_OFF_IG_RESIDUAL_ZERO_POINT
        add     tmp2, args, #N8_OFF_IG_RESIDUAL_SCALE
        ld1r    {r_zp.8h}, [tmp1]
        ld1r    {r_scale.4s}, [tmp2]
        sxtl    r_low.8h, r_bytes.8b
        sxtl2   r_high.8h, r_bytes.16b
        scvtf   sum0.4s, sum0.4s
        scvtf   sum1.4s, sum1.4s
        sub     r_low.8h, r_low.8h, r_zp.8h
        sub     r_high.8h, r_high.8h, r_zp.8h
        scvtf   sum2.4s, sum2.4s
        scvtf   sum3.4s, sum3.4s
        sxtl    r0.4s, r_low.4h
        sxtl2   r1.4s, r_low.8h
        sxtl    r2.4s, r_high.4h
        sxtl2   r3.4s, r_high.8h
        on_sums fmul, scales, scales, scales, scales
        in_place scvtf, r0.4s, r1.4s, r2.4s, r3.4s
        each    fmul, r_scale.4s, r0.4s, r1.4s, r2.4s, r3.4s
        on_sums fadd, r0, r1, r2, r3
.endm

// From floats to int8: leaky slope if there is one (tmp0), rounding and zero point.
//
// Bounds: fcvtns saturates to 32 bits, everything after it to 16 and then 8, so nothing wraps and
//   the clamp sees the right side; NaN becomes 0.
        registers v, 10, qlo, qhi, half0, half1
        registers v, 17, negative0, negative1, negative2
        registers v, 21, negative3, scaled0, scaled1
        registers v, 25, scaled2, scaled3, slopes
        registers v, 12, bytes0, bytes1
        // bytes0: of two pixels each

.macro  to_s8
        cbz     tmp0, 3f
        add     tmp0, tmp0, offset
        ld1     {slopes.4s}, [tmp0]
        fcmlt   negative0.4s, sum0.4s, #0.0
        fcmlt   negative1.4s, sum1.4s, #0.0
        fcmlt   negative2.4s, sum2.4s, #0.0
        fcmlt   negative3.4s, sum3.4s, #0.0
        fmul    scaled0.4s, sum0.4s, slopes.4s
        fmul    scaled1.4s, sum1.4s, slopes.4s
        fmul    scaled2.4s, sum2.4s, slopes.4s
        fmul    scaled3.4s, sum3.4s, slopes.4s
        bit     sum0.16b, scaled0.16b, negative0.16b
        bit     sum1.16b, scaled1.16b, negative1.16b
        bit     sum2.16b, scaled2.16b, negative2.16b
        bit     sum3.16b, scaled3.16b, negative3.16b

3:      fcvtns  sum0.4s, sum0.4s
        add     tmp0, out, out_stride
        fcvtns  sum2.4s, sum2.4s
        add     tmp1, out, out_stride, lsl #1
        fcvtns  sum1.4s, sum1.4s
        add     tmp2, tmp0, out_stride, lsl #1
        fcvtns  sum3.4s, sum3.4s
        sqxtn   half0.4h, sum0.4s
        sqxtn   half1.4h, sum2.4s
        sqxtn2  half0.8h, sum1.4s
        sqxtn2  half1.8h, sum3.4s
        sqadd   half0.8h, half0.8h, zp.8h
        sqadd   half1.8h, half1.8h, zp.8h
        cmp     pixels, #4
        sqxtn   bytes0.8b, half0.8h
        ccmp    channels, #4, #0, hs
        sqxtn   bytes1.8b, half1.8h
.endm

// The clamp, where the flags say whether the tile is full, and the stores of exactly the pixels and
// channels there are.
.macro  store_s8
        tbz     kind, #2, 4f

        // Low bytes of the int32 limits are the int8 limits.
        spread  qlo.8b, N8_OFF_IG_LO, tmp3
        spread  qhi.8b, N8_OFF_IG_HI, tmp3
        smax    bytes0.8b, bytes0.8b, qlo.8b
        smax    bytes1.8b, bytes1.8b, qlo.8b
        smin    bytes0.8b, bytes0.8b, qhi.8b
        smin    bytes1.8b, bytes1.8b, qhi.8b
4:      b.lo    9f

        // A full tile: four words.
        st1     {bytes0.s}[0], [out]
        add     residual, residual, residual_stride, lsl #2
        st1     {bytes0.s}[1], [tmp0]
        subs    pixels, pixels, #4
        st1     {bytes1.s}[0], [tmp1]
        add     out, out, out_stride, lsl #2
        st1     {bytes1.s}[1], [tmp2]
        b.hi    11b
        b       12f

        // The edge: pixel by pixel, the next word moving down to lane 0.
9:      ins     bytes0.d[1], bytes1.d[0]
        mov     tmp0, out
        mov     rows_left, #4
        cmp     pixels, rows_left
        csel    rows_left, pixels, rows_left, lo
5:      mov     tmp1, tmp0
        cmp     channels, #4
        b.lo    6f
        st1     {bytes0.s}[0], [tmp1]
        b       8f
6:      mov     half1.16b, bytes0.16b
        tbz     channels, #1, 7f
        st1     {half1.h}[0], [tmp1], #2
        ext     half1.16b, half1.16b, half1.16b, #2
7:      tbz     channels, #0, 8f
        st1     {half1.b}[0], [tmp1]
8:      ext     bytes0.16b, bytes0.16b, bytes0.16b, #4
        add     tmp0, tmp0, out_stride
        subs    rows_left, rows_left, #1
        b.ne    5b
.endm

// (5d): reduction and requantization of sums that begin with a start.
//
// Bounds: kernel.h says that the low 16 bits are all.
        registers v, 17, added0, added1, added2
added3  .req v21

.macro  fused
        ldr     d8, [tmp2]
        addp    acc00.4s, acc00.4s, acc01.4s
        ldr     tmp3, [args, #N8_OFF_IG_BIAS_F32]
        addp    acc02.4s, acc02.4s, acc03.4s
        ldr     tmp0, [args, #N8_OFF_IG_START]
        addp    acc10.4s, acc10.4s, acc11.4s
        ldr     tmp1, [tmp2, #8]
        addp    acc12.4s, acc12.4s, acc13.4s
        add     tmp3, tmp3, offset
        addp    sum0.4s, acc00.4s, acc02.4s
        add     tmp0, tmp0, offset
        ldr     d17, [tmp3]
        ins     v8.d[1], tmp1
        addp    sum1.4s, acc10.4s, acc12.4s
        ldr     tmp1, [tmp3, #8]
        addp    acc20.4s, acc20.4s, acc21.4s
        ldr     tmp2, [tmp0, #8]
        addp    acc22.4s, acc22.4s, acc23.4s
        ldr     d9, [tmp0]
        ins     added0.d[1], tmp1
        addp    acc30.4s, acc30.4s, acc31.4s
        addp    acc32.4s, acc32.4s, acc33.4s
        addp    sum2.4s, acc20.4s, acc22.4s
        ins     v9.d[1], tmp2
        addp    sum3.4s, acc30.4s, acc32.4s
        mov     added1.16b, added0.16b
        mov     added2.16b, added0.16b
        mov     added3.16b, added0.16b
        on_sums add, v9, v9, v9, v9
        and     tmp3, kind, #GROUPS | CLAMPS
        fmla    added0.4s, sum0.4s, scales.4s
        cmp     pixels, #6
        fmla    added1.4s, sum1.4s, scales.4s
        ccmp    channels, #4, #0, hs
        fmla    added2.4s, sum2.4s, scales.4s
        ccmp    tmp3, #GROUPS, #0, hs
        fmla    added3.4s, sum3.4s, scales.4s
        ldr     taps_left, [args, #N8_OFF_IG_TAPS]
        add     upper, weights, #48
        numbers deep, 2
        uzp1    half0.8h, added0.8h, added1.8h
        uzp1    half1.8h, added2.8h, added3.8h
        sqxtn   bytes0.8b, half0.8h
        sqxtn   bytes1.8b, half1.8h
.endm

// To floats unless the sums are stored, with the bias; then the stores of 32-bit results of exactly the
// pixels and channels there are.
biases  .req v9
biasesq .req q9

.macro  to_32
        tbnz    kind, #4, 2f
        ldr     tmp0, [args, #N8_OFF_IG_BIAS_F32]
        ldr     biasesq, [tmp0, offset]
        in_place scvtf, sum0.4s, sum1.4s, sum2.4s, sum3.4s
        on_sums fmul, scales, scales, scales, scales
        on_sums fadd, biases, biases, biases, biases
        // A full tile: four vectors.
2:      cmp     pixels, #4
        ccmp    channels, #4, #0, hs
        b.lo    3f
        add     tmp0, out, out_stride
        add     tmp1, out, out_stride, lsl #1
        add     tmp2, tmp0, out_stride, lsl #1
        st1     {sum0.4s}, [out]
        st1     {sum1.4s}, [tmp0]
        st1     {sum2.4s}, [tmp1]
        st1     {sum3.4s}, [tmp2]
        b       8f

        // The edge: pixel by pixel, the 4 vectors moving up after each other.
3:      mov     tmp0, out
        mov     rows_left, #4
        cmp     pixels, rows_left
        csel    rows_left, pixels, rows_left, lo
4:      mov     tmp1, tmp0
        cmp     channels, #4
        b.lo    5f
        st1     {sum0.4s}, [tmp1]
        b       7f
5:      tbz     channels, #1, 6f
        st1     {sum0.2s}, [tmp1], #8
        ext     sum0.16b, sum0.16b, sum0.16b, #8
6:      tbz     channels, #0, 7f
        st1     {sum0.s}[0], [tmp1]
7:      mov     sum0.16b, sum1.16b
        mov     sum1.16b, sum2.16b
        mov     sum2.16b, sum3.16b
        add     tmp0, tmp0, out_stride
        subs    rows_left, rows_left, #1
        b.ne    4b
8:
.endm

// The kernel. All share their code, which is in the one that stores int8, adds nothing and is for
// out-of-order cores: the others say what they are by `kind` and go on there.

func    n8_igemm_s8_s8_neon_4x4
        mov     tmp0, #0
.Lkind:
        enter   144, SAVED
        ldp     w10, w12, [args, #N8_OFF_IG_LO]
        add     w10, w10, #128
        eor     w12, w12, #127
        orr     w10, w10, w12
        cmp     w10, #0
        cset    tmp1, ne
        orr     kind, tmp0, tmp1, lsl #2
        ldr     out_stride, [args, #N8_OFF_IG_OUT_STRIDE]
        ldp     cursor, panel, [args, #N8_OFF_IG_ROWS]
        ldr     channels, [args, #N8_OFF_IG_CHANNELS]
        ldr     left, [args, #N8_OFF_IG_DEPTH]
        ldr     multiplier, [args, #N8_OFF_IG_MULTIPLIER]
        ldr     tmp0, [args, #N8_OFF_IG_BIAS]
        tst     kind, #0x10
        csel    multiplier, multiplier, tmp0, eq        // sums have none
        ldr     panel_marks, [args, #N8_OFF_IG_DEEP]
        ldr     residual_stride, [args, #N8_OFF_IG_RESIDUAL_STRIDE]
        mov     offset, #0

        // The first operands of the first tile, and of what follows one pixel.
.Lfirst:
        ldp     ptr0, ptr1, [cursor], #16
        ldp     ptr2, ptr3, [cursor], #16
        mov     weights, panel
        mov     marks, panel_marks
        tbz     kind, #3, 1f
        load_first_in_order
        b       .Lchannels
1:      load_first

        // One tile of channels: its weights, `panel`, serve all pixels.
.Lchannels:
        ldr     out, [args, #N8_OFF_IG_OUT]
        ldr     residual, [args, #N8_OFF_IG_RESIDUAL]
        ldr     pixels, [args, #N8_OFF_IG_PIXELS]
        lsr     tmp0, offset, #2
        tst     kind, #2
        csel    tmp1, tmp0, offset, eq
        add     out, out, tmp1
        add     residual, residual, tmp0
        ldr     tmp0, [args, #N8_OFF_IG_START]
        and     kind, kind, #~START
        cbz     tmp0, 11f
        ldr     w8, [tmp0, offset]
        cbz     w8, 11f
        orr     kind, kind, #START

        // One tile of pixels.
11:     ldr     taps_left, [args, #N8_OFF_IG_TAPS]
        cmp     pixels, #1
        b.eq    .Lone
        tbz     kind, #3, .Lout_of_order
        sums_in_order
.Lsummed:
        add     tmp2, multiplier, offset
        tbnz    kind, #5, .Lfused
        reduce
        tbnz    kind, #0, .Lother
        scale
.Lscaled:
        to_s8
.Lstore:
        store_s8
.Lnext:
        add     out, out, out_stride, lsl #2
        add     residual, residual, residual_stride, lsl #2
        subs    pixels, pixels, #4
        b.hi    11b

12:     add     offset, offset, #16
        subs    channels, channels, #4
        b.ls    13f
        adds    tmp0, pixels, #3
        b.ne    .Lchannels
        ldr     cursor, [args, #N8_OFF_IG_ROWS]
        b       .Lfirst

13:     .cfi_remember_state
        leave   144, SAVED
        ret
        .cfi_restore_state

.Lother:
        tbnz    kind, #1, .Lwide
        scale_add
        b       .Lscaled

        // (5d) of a full tile in groups, after which another one follows, is stored from one address.
.Lfused:
        fused
        b.ne    16f
        st1     {bytes0.s}[0], [out], out_stride
        st1     {bytes0.s}[1], [out], out_stride
        sub     pixels, pixels, #4
        st1     {bytes1.s}[0], [out], out_stride
        cmp     left, #16
        st1     {bytes1.s}[1], [out], out_stride
        b.ne    .Lgroups
        b       .Lshort
16:     add     tmp0, out, out_stride
        add     tmp1, out, out_stride, lsl #1
        add     tmp2, tmp0, out_stride, lsl #1
        cmp     pixels, #4
        ccmp    channels, #4, #0, hs
        b       .Lstore
.Lwide:
        to_32
        b       .Lnext

.Lout_of_order:
        sums
        b       .Lsummed
.Lone:
        sums_of_one
        b       .Lsummed
endfunc n8_igemm_s8_s8_neon_4x4

.macro  other   name, kinds
func    n8_igemm_\name
        mov     tmp0, #\kinds
        b       .Lkind
endfunc n8_igemm_\name
.endm

other   s8_s8_add_neon_4x4, ADD
other   s8_s32_neon_4x4, WORDS
other   s8_f32_neon_4x4, FLOATS
other   s8_s8_neon_4x4_a53, GROUPS
other   s8_s8_add_neon_4x4_a53, GROUPS | ADD
other   s8_s32_neon_4x4_a53, GROUPS | WORDS
other   s8_f32_neon_4x4_a53, GROUPS | FLOATS
