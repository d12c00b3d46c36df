// SPDX-License-Identifier: Apache-2.0
//
// sums[plane][tile][n] = sum over k of in[plane][tile][k] * weights[plane][k][n], modulo 2^32, for
// n < 16                                                                                  (13)
//
//   void n8_winograd_gemm_s32_neon(const struct n8_winograd_gemm_args *args);
//
// Six tiles at a time, then four or two. An odd one is left to a block that begins a tile earlier. The
// sums of tile r lie in v8 + 4 * r and the next three.
//
//                        v4, v5 of even k   weights of 16 channels
//                        v6, v7 of odd k
//   in v0, v1, v2        v8 .. v31          4 k of two tiles each
//
// The Cortex-A53 begins a load to a vector register beside no product, but beside the insertion of
//   a general register. So 128 bits come as two halves: the lower one beside the insertion of the
//   upper one of the load before, the upper one to a general register, beside a product. After the
//   last k the first operands are loaded once more: the weights are those of the next tiles,
//   nothing beyond the arrays is read.
// Bounds: products are below 2^28, sums wrap.
// Registers: x0-x17, v0-v31, see below.
// Stack: 80 bytes, d8 to d15 and what is from plane to plane of weights.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, sums, in, weights, size, tiles, planes, sums_plane
        registers x, 8, in_plane, left, to
// In arguments of macros, where the preprocessor does not look.
        registers x, 11, row0, row2, row4, next, offset, offset1
upper   .req x0
second  .req x17                // row0 and offset1
        // size: bytes of a tile's inputs; offset1: of what is at `offset` of the second of two tiles

        // Eight channels at the k-th inputs of two tiles. Before that the lower half of \to is loaded,
        // and the upper one, on its way since, inserted to \last.
.macro  eight   op, s0, s1, s2, s3, in, w, k, last, to, lower, rest
    .ifnb \to
        ldr     d\to, \lower
        mov     v\last\().d[1], upper
    .endif
        \op     v\s0\().4s, v\w\().4h, v\in\().h[\k]
    .ifnb \to
        ldr     upper, \rest
    .endif
        \op     v\s2\().4s, v\w\().4h, v\in\().h[\k + 4]
        \op\()2 v\s1\().4s, v\w\().8h, v\in\().h[\k]
        \op\()2 v\s3\().4s, v\w\().8h, v\in\().h[\k + 4]
.endm

.macro  first0  op, more:vararg
        eight   \op, 8, 9, 12, 13, 0, \more
.endm

.macro  last0   op, more:vararg
        eight   \op, 10, 11, 14, 15, 0, \more
.endm

.macro  first1  op, more:vararg
        eight   \op, 16, 17, 20, 21, 1, \more
.endm

.macro  last1   op, more:vararg
        eight   \op, 18, 19, 22, 23, 1, \more
.endm

.macro  both2   op, w0, w1, k
        eight   \op, 24, 25, 28, 29, 2, \w0, \k
        eight   \op, 26, 27, 30, 31, 2, \w1, \k
.endm

#define WEIGHTS     "[next], #16", "[next, #-8]"
#define INPUTS(row) HALVES([row, offset]), HALVES([row, offset1])

        // The first of four k, with the inputs of all tiles but the first two.
.macro  start   op, rows
    .if \rows == 2
        first0  \op, 4, 0, 5, 6, WEIGHTS
        last0   \op, 5, 0, 6, 7, WEIGHTS
    .else
        first0  \op, 4, 0, 5, 1, INPUTS(row2)
      .if \rows == 4
        last0   \op, 5, 0, 1, 6, WEIGHTS
        first1  \op, 4, 0, 6, 7, WEIGHTS
        last1   \op, 5, 0
      .else
        last0   \op, 5, 0, 1, 2, INPUTS(row4)
        first1  \op, 4, 0, 2, 6, WEIGHTS
        last1   \op, 5, 0, 6, 7, WEIGHTS
        both2   \op, 4, 5, 0
      .endif
    .endif
.endm

        // The next ones, with the weights of the k after them, and what goes beside products.
.macro  go      rows, k, w0, w1, next0, next1, a, b, c, d
        first0  smlal, \w0, \k, \w1, \next0, WEIGHTS
        \a
    .if \rows == 2
        \b
        last0   smlal, \w1, \k, \next0, \next1, WEIGHTS
        \c
        \d
    .else
        last0   smlal, \w1, \k
        \b
      .if \k == 3
        first1  smlal, \w0, \k, \next0, 0, INPUTS(row0)
        last1   smlal, \w1, \k, 0, \next1, WEIGHTS
      .else
        first1  smlal, \w0, \k, \next0, \next1, WEIGHTS
        \c
        last1   smlal, \w1, \k
        \d
      .endif
      .if \rows == 6
        both2   smlal, \w0, \w1, \k
      .endif
    .endif
.endm

        // All of `rows` tiles. The first products begin the sums.
.macro  block   rows
        mov     offset, #0
    .if \rows > 2
        add     row2, row0, size, lsl #1
    .endif
    .if \rows > 4
        add     row4, row0, size, lsl #2
    .endif
        start   smull, \rows
        b       2f
1:      start   smlal, \rows
2:      go      \rows, 1, 6, 7, 4, 5, "add offset, offset, #8", "add offset1, offset1, #8", \
                "cmp offset, size", "csel offset, xzr, offset, eq"
    .if \rows == 2
        csel    offset1, xzr, offset1, eq
        add     second, row0, offset1
        ldr     d1, [row0, offset]
        go      \rows, 2, 4, 5, 6, 7, , , , "csel next, weights, next, eq"
    .else
        go      \rows, 2, 4, 5, 6, 7, "csel offset1, xzr, offset1, eq", , , \
                "csel next, weights, next, eq"
    .endif
    .if \rows == 2
        ld1     {v1.d}[1], [second]
    .endif
        go      \rows, 3, 6, 7, 4, 5
    .if \rows == 2
        mov     v0.16b, v1.16b
    .endif
        b.ne    1b
    .if \rows > 2
        add     row0, row0, size, lsl #2
    .endif
    .if \rows != 4
        add     row0, row0, size, lsl #1
    .endif
.endm

.macro  store   s0, s1, s2, s3
        stp     q\s0, q\s1, [to], #32
        stp     q\s2, q\s3, [to], #32
.endm

func    n8_winograd_gemm_s32_neon
        enter   80, D8_TO_D15
        ldr     x17, [args, #N8_OFF_WS_WEIGHTS_PLANE]
        str     x17, [sp, #64]
        ldp     sums, in, [args, #N8_OFF_WS_SUMS]
        ldp     weights, size, [args, #N8_OFF_WS_WEIGHTS]
        ldp     tiles, planes, [args, #N8_OFF_WS_TILES]
        ldp     sums_plane, in_plane, [args, #N8_OFF_WS_SUMS_PLANE]
        lsl     size, size, #1

.Lplane:
        mov     next, weights
        mov     row0, in
        mov     to, sums
        mov     left, tiles
        ldr     q4, [next], #16
        ldr     d5, [next], #16
        ldr     upper, [next, #-8]

        // A tile earlier, if there is one, where an odd number is left.
.Lnext:
        cmp     left, tiles
        and     x17, left, #1
        csel    x17, x17, xzr, ne
        add     left, left, x17
        msub    row0, x17, size, row0
        sub     to, to, x17, lsl #6
        cmp     left, #1                        // of one tile alone both are that
        csel    offset1, xzr, size, eq
        ldr     d0, [row0]
        add     second, row0, offset1
        cmp     left, #4
        ld1     {v0.d}[1], [second]
        b.lo    .Ltwo
        cmp     left, #6
        b.lo    .Lfour
        block   6
        store   8, 9, 10, 11
        store   12, 13, 14, 15
        store   16, 17, 18, 19
        store   20, 21, 22, 23
        store   24, 25, 26, 27
        store   28, 29, 30, 31
        subs    left, left, #6
        b.ne    .Lnext
        b       .Ldone
.Lfour: block   4
        store   8, 9, 10, 11
        store   12, 13, 14, 15
        store   16, 17, 18, 19
        store   20, 21, 22, 23
        subs    left, left, #4
        b.ne    .Lnext
        b       .Ldone
.Ltwo:  block   2
        store   8, 9, 10, 11
        subs    left, left, #2
        b.lo    .Ldone
        store   12, 13, 14, 15
        b.ne    .Lnext
.Ldone:
        ldr     x17, [sp, #64]
        add     weights, weights, x17
        add     in, in, in_plane
        add     sums, sums, sums_plane
        subs    planes, planes, #1
        b.ne    .Lplane

        leave   80, D8_TO_D15
        ret
endfunc n8_winograd_gemm_s32_neon
