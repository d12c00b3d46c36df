// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM for one pixel, as of a fully connected layer, 16 channels at a time, in orders for
// out-of-order cores, for the Cortex-A53, in groups, and for the Cortex-A55:
//
//   acc''[n] = bias[n] + sum over taps t and bytes k of rows[t][k] * w[n][t][k]           (3)(12)
//   s32   out[n] = acc''[n]
//   f32   out[n] = fadd(fmul((float) acc''[n], multiplier[n]), bias_f32[n])                    (4)
//   s8    v = fmul((float) acc''[n], multiplier[n]), leaky by slope[n] if there is one        (5b)
//         out[n] = clamp(rne(v) + zero_point, lo, hi)                                          (5)
//
//   void n8_igemm_s8_..._1x16(const struct n8_igemm_args *args);
//   void n8_igemm_s8_..._1x16_a53(const struct n8_igemm_args *args);
//   void n8_igemm_s8_..._1x16_a55(const struct n8_igemm_args *args);
//
// The sums lie in v16-v19. Between the parts: channels left (over 16 where more follow); out: of
//   these channels; offset = 4 * the first one; marks: of the next channels. All other vector registers
//   are free, and ptr0, cursor, left, taps_left, upper, number, high0, high1 and deep.
// Stack: 64 bytes, callee-saved registers.
// The layout of all arrays: runtime/kernel.h, whose demands runtime/conv proves.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, ptr0, upper, weights, cursor, left, depth, taps_left
        // upper: the second 16 bytes of a group; number: of a block, or its bytes
        registers x, 8, number, channels, out, offset, rows
        registers x, 14, high0, high1
        registers x, 16, high2, marks
kind    .req w13
deep    .req x16                // the word of a group
high3   .req x17

// Four vectors of what belongs to channels, at N8_OFF_IG_`field`, in v0-v3.
.macro  load_channels field
        ldr     ptr0, [args, #N8_OFF_IG_\field]
        add     ptr0, ptr0, offset
        ldp     q0, q1, [ptr0]
        ldp     q2, q3, [ptr0, #32]
.endm

// Sums by multiplications to 16 bits, 16 bytes of each channel at a time.
//
// v0 holds the bytes of the pixel, v1-v4 and v9-v12 those of 4 channels; products go through
//   v5-v8, and each of v16-v31 holds 4 partial sums of a channel.
// Bounds: |a| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products
//   that share an int16 lane reach at most 32640; sadalp empties the lane before a third. int32
//   is proved by (12).

        // The products of 4 channels and their weights a-d, added to their sums.
.macro  multiply a, b, c, d, sum0, sum1, sum2, sum3
        smull   v5.8h, v0.8b, \a\().8b
        smull   v6.8h, v0.8b, \b\().8b
        smull   v7.8h, v0.8b, \c\().8b
        smull   v8.8h, v0.8b, \d\().8b
        smlal2  v5.8h, v0.16b, \a\().16b
        smlal2  v6.8h, v0.16b, \b\().16b
        smlal2  v7.8h, v0.16b, \c\().16b
        smlal2  v8.8h, v0.16b, \d\().16b
        sadalp  \sum0\().4s, v5.8h
        sadalp  \sum1\().4s, v6.8h
        sadalp  \sum2\().4s, v7.8h
        sadalp  \sum3\().4s, v8.8h
.endm

// In groups (asm.h) of 32 bytes: v0 holds the first 16 of the pixel, v1 the second; v4-v7 and v12-v15
// weights of 4 channels, which are summed deep or not. A group begins and ends with its first 16 bytes
// in v0 and v4-v7, of v6 and v7 the high half in high0 and high1.

        // Two blocks of the pixel, from this one of the group on: the second is to be inserted.
.macro  load_blocks v, block
        ubfx    number, deep, #16 * \block + 1, #15
        ldr     d\v, [ptr0, number, lsl #3]
        ubfx    number, deep, #16 * \block + 17, #15
        ldr     number, [ptr0, number, lsl #3]
.endm

.macro  load_group
        ldr     deep, [marks], #8
        load_blocks 0, 0
.endm

        // The last 16 bytes of a tap and 4 channels, while the weights of the next 4 are loaded.
.macro  by_two  a, b, c, d, next_a, next_b, next_c, next_d, s0, s1, s2, s3, with
        products smull, 8b, v0, v\a, v\b, v\c, v\d, HALVES(d\next_a, weights, v\c, high0), \
                 HALVES(d\next_b, weights, v\d, high1), , HALVES(d\next_c, weights, v\next_a, high0)
        products smlal2, 16b, v0, v\a, v\b, v\c, v\d, , , HALVES(d\next_d, weights, v\next_b, high1)
        \with
        sum_up  sadalp, \s0, \s1, \s2, \s3
.endm

        // The third row of products of a group.
.macro  third   op
        products \op, 8b, v1, v12, v13, v14, v15, HALVES(d4, weights, v14, high0), HALVES(d5, weights, v15, high1), , \
                 HALVES(d6, weights, v4, high0)
.endm

        // Those of 32 bytes and the 4 channels of a number, four in a lane, or else two, at the label
        // 2\()number; from there back to 3\()number.
.macro  by_four number, s0, s1, s2, s3
        products smull, 8b, v0, v4, v5, v6, v7, HALVES(d12, upper, v6, high0), HALVES(d13, upper, v7, high1), , \
                 HALVES(d14, upper, v12, high0)
        products smlal2, 16b, v0, v4, v5, v6, v7, , , HALVES(d15, upper, v13, high1)
    .if \number == 0
        ins     v1.d[1], number
    .endif
    .if \number == 3
        mov     weights, upper
        advance 32
    .endif
        tbz     deep, #16 * \number, 2\number\()f
        third   smlal
3\number:
    .if \number == 3
        ldr     deep, [marks], #8
    .endif
        products smlal2, 16b, v1, v12, v13, v14, v15, , , HALVES(d7, weights, v5, high1)
    .if \number == 3
        load_blocks 0, 0
    .endif
        sum_up  sadalp, \s0, \s1, \s2, \s3
.endm

.macro  not_deep number, s0, s1, s2, s3
2\number:
        sum_up  sadalp, \s0, \s1, \s2, \s3
        third   smull
        b       3\number\()b
.endm

        // At the end of a tap, from here on loads are of the next one; at the end of the last tap, of
        // the first again by the last numbers, which are not used. Then `left` is where the next panel
        // begins.
.macro  advance size
        subs    left, left, #\size
        b.hi    8f
        mov     left, depth
        subs    taps_left, taps_left, #1
        b.ne    7f
        mov     left, weights
        sub     marks, marks, #8
        ldr     weights, [args, #N8_OFF_IG_WEIGHTS]
        ldr     ptr0, [rows]
        b       8f
7:      ldr     ptr0, [cursor], #8
8:
.endm

.macro  sums_in_groups
        ldr     ptr0, [cursor], #8
        mov     left, depth
        ldp     q4, q5, [weights]
        ldr     d6, [weights, #32]
        ldr     high0, [weights, #40]
        ldr     d7, [weights, #48]
        ldr     high1, [weights, #56]
        add     weights, weights, #64
        load_group

11:     ins     v0.d[1], number
        cmp     left, #16
        b.eq    12f
        load_blocks 1, 2
        add     upper, weights, #192
        by_four 0, v16, v17, v18, v19
        by_four 1, v20, v21, v22, v23
        by_four 2, v24, v25, v26, v27
        by_four 3, v28, v29, v30, v31
        cbz     taps_left, 15f
        b       11b
        not_deep 0, v16, v17, v18, v19
        not_deep 1, v20, v21, v22, v23
        not_deep 2, v24, v25, v26, v27
        not_deep 3, v28, v29, v30, v31

12:     by_two  4, 5, 6, 7, 12, 13, 14, 15, v16, v17, v18, v19
        by_two  12, 13, 14, 15, 4, 5, 6, 7, v20, v21, v22, v23
        by_two  4, 5, 6, 7, 12, 13, 14, 15, v24, v25, v26, v27
        advance 16
        by_two  12, 13, 14, 15, 4, 5, 6, 7, v28, v29, v30, v31, load_group
        cbnz    taps_left, 11b
15:     mov     weights, left
.endm

.macro  sums_neon
        fill    movi, #0, v16.4s, v17.4s, v18.4s, v19.4s, v20.4s, v21.4s, v22.4s, v23.4s, v24.4s, \
                v25.4s, v26.4s, v27.4s, v28.4s, v29.4s, v30.4s, v31.4s
        tbz     kind, #2, 1f
        sums_in_groups
        b       3f

        // One tap.
1:      ldr     ptr0, [cursor], #8
        mov     left, depth

        // 16 bytes of it; the next weights are loaded while these are multiplied.
2:      ldr     q0, [ptr0], #16
        ldp     q1, q2, [weights]
        ldp     q3, q4, [weights, #32]
        ldp     q9, q10, [weights, #64]
        ldp     q11, q12, [weights, #96]
        multiply v1, v2, v3, v4, v16, v17, v18, v19
        ldp     q1, q2, [weights, #128]
        ldp     q3, q4, [weights, #160]
        multiply v9, v10, v11, v12, v20, v21, v22, v23
        ldp     q9, q10, [weights, #192]
        ldp     q11, q12, [weights, #224]
        multiply v1, v2, v3, v4, v24, v25, v26, v27
        add     weights, weights, #256
        subs    left, left, #16
        multiply v9, v10, v11, v12, v28, v29, v30, v31
        b.ne    2b

        subs    taps_left, taps_left, #1
        b.ne    1b

3:      // Pairwise additions leave the sums of 4 channels in one vector.
        load_channels BIAS
        addp    v16.4s, v16.4s, v17.4s
        addp    v18.4s, v18.4s, v19.4s
        addp    v20.4s, v20.4s, v21.4s
        addp    v22.4s, v22.4s, v23.4s
        addp    v24.4s, v24.4s, v25.4s
        addp    v26.4s, v26.4s, v27.4s
        addp    v28.4s, v28.4s, v29.4s
        addp    v30.4s, v30.4s, v31.4s
        addp    v16.4s, v16.4s, v18.4s
        addp    v17.4s, v20.4s, v22.4s
        addp    v18.4s, v24.4s, v26.4s
        addp    v19.4s, v28.4s, v30.4s
        on16    add, v0.4s, v1.4s, v2.4s, v3.4s
.endm

// Sums by dot products of 4 bytes.
//
// v0 holds 16 bytes of the pixel, v1-v7, v9-v15, v24 and v25 weights; the second and fourth
//   products go to sums of their own, v20-v23, so that each has to wait for fewer others.
// Bounds: sdot adds exact products to int32, which is proved by (12).

        // The products of 4 bytes, the `group`th of 16, with the weights a-d.
.macro  dots    group, sum0, sum1, sum2, sum3, a, b, c, d
        sdot    v\sum0\().4s, v\a\().16b, v0.4b[\group]
        sdot    v\sum1\().4s, v\b\().16b, v0.4b[\group]
        sdot    v\sum2\().4s, v\c\().16b, v0.4b[\group]
        sdot    v\sum3\().4s, v\d\().16b, v0.4b[\group]
.endm

// For the Cortex-A55, which issues a load of 64 bits beside a product, but none of 128: v0 and v2 hold
// 8 bytes of the pixel each, v24-v31 weights, whose high halves come by general registers. With a
// product the weights of the one that comes four later are loaded, and those of the one that comes two
// later put together.

        // at: of the weights in the step; from 256 on, in the next one.
.macro  load_ahead at, v, high
        ldr     d\v, [weights, #\at]
        ldr     \high, [weights, #\at + 8]
.endm

.macro  dots_ahead at, pixel, group, s0, s1, s2, s3, a, b, c, d, e, f, g, h
        sdot    v\s0\().4s, v\a\().16b, v\pixel\().4b[\group]
        load_ahead \at + 64, \e, high0
        ins     v\c\().d[1], high2
        sdot    v\s1\().4s, v\b\().16b, v\pixel\().4b[\group]
        load_ahead \at + 80, \f, high1
        ins     v\d\().d[1], high3
        sdot    v\s2\().4s, v\c\().16b, v\pixel\().4b[\group]
        load_ahead \at + 96, \g, high2
        ins     v\e\().d[1], high0
        sdot    v\s3\().4s, v\d\().16b, v\pixel\().4b[\group]
        load_ahead \at + 112, \h, high3
        ins     v\f\().d[1], high1
.endm

        // All 16 bytes of a tap but the last, which the loop for out-of-order cores takes.
.macro  sums_ahead
        ldr     d0, [ptr0]
        load_ahead 0, 24, high0
        load_ahead 16, 25, high1
        load_ahead 32, 26, high2
        load_ahead 48, 27, high3
        ins     v24.d[1], high0
        ins     v25.d[1], high1
6:      ldr     d2, [ptr0, #8]
        dots_ahead 0, 0, 0, 16, 17, 18, 19, 24, 25, 26, 27, 28, 29, 30, 31
        dots_ahead 64, 0, 1, 20, 21, 22, 23, 28, 29, 30, 31, 24, 25, 26, 27
        ldr     d0, [ptr0, #16]!
        dots_ahead 128, 2, 0, 16, 17, 18, 19, 24, 25, 26, 27, 28, 29, 30, 31
        dots_ahead 192, 2, 1, 20, 21, 22, 23, 28, 29, 30, 31, 24, 25, 26, 27
        add     weights, weights, #256
        subs    left, left, #16
        b.hs    6b
.endm

.macro  sums_dotprod
        ldr     ptr0, [args, #N8_OFF_IG_BIAS]
        add     ptr0, ptr0, offset
        ldp     q16, q17, [ptr0]
        ldp     q18, q19, [ptr0, #32]
        fill    movi, #0, v20.4s, v21.4s, v22.4s, v23.4s

        // One tap.
1:      ldr     ptr0, [cursor], #8
        subs    left, depth, #16
        b.lo    3f
        tbz     kind, #2, 2f
        subs    left, left, #16
        b.lo    7f
        sums_ahead
7:      add     left, left, #16

        // 16 bytes of it.
2:      ldr     q0, [ptr0], #16
        ldp     q1, q2, [weights]
        ldp     q3, q4, [weights, #32]
        ldp     q5, q6, [weights, #64]
        ldp     q7, q9, [weights, #96]
        ldp     q10, q11, [weights, #128]
        ldp     q12, q13, [weights, #160]
        ldp     q14, q15, [weights, #192]
        ldp     q24, q25, [weights, #224]
        add     weights, weights, #256
        subs    left, left, #16
        dots    0, 16, 17, 18, 19, 1, 2, 3, 4
        dots    1, 20, 21, 22, 23, 5, 6, 7, 9
        dots    2, 16, 17, 18, 19, 10, 11, 12, 13
        dots    3, 20, 21, 22, 23, 14, 15, 24, 25
        b.hs    2b

        // What is left of it, 4 bytes at a time.
3:      adds    left, left, #16
        b.eq    5f
4:      ldr     s0, [ptr0], #4
        ldp     q1, q2, [weights]
        ldp     q3, q4, [weights, #32]
        add     weights, weights, #64
        subs    left, left, #4
        dots    0, 16, 17, 18, 19, 1, 2, 3, 4
        b.ne    4b

5:      subs    taps_left, taps_left, #1
        b.ne    1b
        on16    add, v20.4s, v21.4s, v22.4s, v23.4s
.endm

// From the sums to floats: fmul((float) acc'', multiplier[n]). scvtf rounds to nearest even (7).
.macro  scale
        load_channels MULTIPLIER
        in_place scvtf, v16.4s, v17.4s, v18.4s, v19.4s
        on16    fmul, v0.4s, v1.4s, v2.4s, v3.4s
.endm

// Stores exactly the channels there are, 32 bits of each.
.macro  store32
        cmp     channels, #16
        b.lo    2f
        stp     q16, q17, [out]
        stp     q18, q19, [out, #32]
        b       9f

        // The last channels.
2:      mov     ptr0, out
        tbz     channels, #3, 3f
        stp     q16, q17, [ptr0], #32
        mov     v16.16b, v18.16b
        mov     v17.16b, v19.16b
3:      tbz     channels, #2, 4f
        str     q16, [ptr0], #16
        mov     v16.16b, v17.16b
4:      tbz     channels, #1, 5f
        str     d16, [ptr0], #8
        ext     v16.16b, v16.16b, v16.16b, #8
5:      tbz     channels, #0, 9f
        str     s16, [ptr0]
9:
.endm

// From floats to int8: leaky slope if there is one, rounding, zero point and clamp, and the stores
// of exactly the channels there are.
.macro  to_s8
        ldr     ptr0, [args, #N8_OFF_IG_SLOPE]
        cbz     ptr0, 1f
        add     ptr0, ptr0, offset
        ldp     q0, q1, [ptr0]
        ldp     q2, q3, [ptr0, #32]
        leaky   v0, v4, v5, v16
        leaky   v1, v4, v5, v17
        leaky   v2, v4, v5, v18
        leaky   v3, v4, v5, v19
1:      load_limits v0, v1, v2, ptr0, N8_OFF_IG_ZERO_POINT, N8_OFF_IG_LO, N8_OFF_IG_HI
        round16 v16, v17, v18, v19, v0, v1, v2
        cmp     channels, #16
        b.lo    2f
        str     q16, [out]
        b       9f
2:      mov     ptr0, out
        store_last ptr0, channels, step=0
9:
.endm

// Kernels that differ in what they store only share their code, which is in the one that stores
// int8: the others say what they are by `kind` and go on there.
#define SUMS    1       // stores the sums
#define FLOATS  2       // stores floats
#define ORDERED 4       // for cores that issue in order

// name, march: of the function. sums: the macro above for both.
.macro  igemm   name, march, sums
func    n8_igemm_s8_s8_\name, \march
        mov     kind, #0
.Lkind_\name:
        enter   64, D8_TO_D15
        ldr     out, [args, #N8_OFF_IG_OUT]
        ldp     rows, weights, [args, #N8_OFF_IG_ROWS]
        ldr     channels, [args, #N8_OFF_IG_CHANNELS]
        ldr     depth, [args, #N8_OFF_IG_DEPTH]
        ldr     marks, [args, #N8_OFF_IG_DEEP]
        mov     offset, #0

.Lchannels\@:
        mov     cursor, rows
        ldr     taps_left, [args, #N8_OFF_IG_TAPS]
        \sums
        tbnz    kind, #0, .Lsums\@
        scale
        tbnz    kind, #1, .Lfloats\@
        to_s8
        add     out, out, #16
        b       .Lnext\@
.Lfloats\@:
        load_channels BIAS_F32
        on16    fadd, v0.4s, v1.4s, v2.4s, v3.4s
.Lsums\@:
        store32
        add     out, out, #64
.Lnext\@:
        add     offset, offset, #64
        subs    channels, channels, #16
        b.hi    .Lchannels\@            // whose weights begin where those of the last ones end
        leave   64, D8_TO_D15
        ret
endfunc n8_igemm_s8_s8_\name
.endm

.macro  other   slot, name, march, kinds, suffix
func    n8_igemm_\slot\()_\name\suffix, \march
        mov     kind, #\kinds
        b       .Lkind_\name
endfunc n8_igemm_\slot\()_\name\suffix
.endm

igemm   neon_1x16, NEON, sums_neon
other   s8_s32, neon_1x16, NEON, SUMS
other   s8_f32, neon_1x16, NEON, FLOATS
other   s8_s8, neon_1x16, NEON, ORDERED, _a53
other   s8_f32, neon_1x16, NEON, ORDERED | FLOATS, _a53
igemm   dotprod_1x16, DOTPROD, sums_dotprod
other   s8_s32, dotprod_1x16, DOTPROD, SUMS
other   s8_f32, dotprod_1x16, DOTPROD, FLOATS
other   s8_s8, dotprod_1x16, DOTPROD, ORDERED, _a55
other   s8_f32, dotprod_1x16, DOTPROD, ORDERED | FLOATS, _a55
