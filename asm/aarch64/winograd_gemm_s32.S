// SPDX-License-Identifier: Apache-2.0
//
// sums[plane][tile][n] = sum over k of in[plane][tile][k] * weights[plane][k][n], modulo 2^32, for
// n < 16                                                                                  (13)
//
//   void n8_winograd_gemm_s32_neon(const struct n8_winograd_gemm_args *args);
//
// Four tiles at a time, then two. The sums of tile r lie in v16 + 4 * r and the next three.
//
//                        v4 .. v7           weights of 8 channels, one k, and the next three
//   in v0, v1            v16 .. v31         4 k of tiles 0 and 1, 2 and 3; v2, v3: the next 4
//
// The Cortex-A53 begins a load to a vector register beside no product, but beside the insertion of
//   a general register. So 128 bits come as two halves: the lower one beside the insertion of the
//   upper one of the load before, the upper one to a general register, beside a product. After the
//   last k the first operands are loaded once more: the weights are those of the next tiles,
//   nothing beyond the arrays is read.
// Bounds: products are below 2^28, sums wrap.
// Registers: x0-x17, v0-v7, v16-v31, see below.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, sums, in, weights, depth, tiles, planes, sums_plane
        registers x, 16, tiles_left, to
in_plane .req x8
left     .req x15
// In arguments of macros, where the preprocessor does not look.
        registers x, 9, row0, row1, row2, row3, next, offset
upper   .req x0

        // The k-th of `rows` tiles' inputs times four channels: half of \w.
.macro  column  op, rows, half, s0, s1, s2, s3, w, in0, in2, k, with
        \op     v\s0\().4s, v\w\().\half, v\in0\().h[\k]
        \with
        \op     v\s1\().4s, v\w\().\half, v\in0\().h[\k + 4]
    .if \rows > 2
        \op     v\s2\().4s, v\w\().\half, v\in2\().h[\k]
        \op     v\s3\().4s, v\w\().\half, v\in2\().h[\k + 4]
    .endif
.endm

        // Both halves, while \to, whose turn comes after the next two, is loaded, and before it,
        // where it is given, \more with inputs. last: what was loaded before.
.macro  both    op, rows, s, t, w, to, last, in0, in2, k, more, more_lower, more_upper
    .ifb \more
        column  \op, \rows, 4h, \s, \w, \in0, \in2, \k
        ldr     d\to, [next], #16
        mov     v\last\().d[1], upper
    .else
        ldr     d\more, \more_lower
        mov     v\last\().d[1], upper
        column  \op, \rows, 4h, \s, \w, \in0, \in2, \k, "ldr upper, \more_upper"
        ldr     d\to, [next], #16
        mov     v\more\().d[1], upper
    .endif
        column  \op\()2, \rows, 8h, \t, \w, \in0, \in2, \k, "ldr upper, [next, #-8]"
.endm

.macro  first8  op, rows, w, to, last, inputs:vararg
        both    \op, \rows, "16, 20, 24, 28", "17, 21, 25, 29", \w, \to, \last, \inputs
.endm

.macro  last8   op, rows, w, to, last, inputs:vararg
        both    \op, \rows, "18, 22, 26, 30", "19, 23, 27, 31", \w, \to, \last, \inputs
.endm

        // Four k of the inputs in \in0 and \in2; the next ones go to \next0 and \next2. turn: the
        // weights after these may be the first again.
.macro  four_k  op, rows, in0, in2, next0, next2, turn
        first8  \op, \rows, 4, 7, 6, \in0, \in2, 0
        last8   \op, \rows, 5, 4, 7, \in0, \in2, 0
    .ifnb \turn
        subs    left, left, #8
        csel    offset, xzr, offset, eq
    .endif
        first8  smlal, \rows, 6, 5, 4, \in0, \in2, 1
        last8   smlal, \rows, 7, 6, 5, \in0, \in2, 1
        first8  smlal, \rows, 4, 7, 6, \in0, \in2, 2, \next0, "[row0, offset]", "[row1, offset]"
    .ifnb \turn
        csel    next, weights, next, eq
    .endif
        last8   smlal, \rows, 5, 4, 7, \in0, \in2, 2
    .if \rows > 2
        first8  smlal, \rows, 6, 5, 4, \in0, \in2, 3, \next2, "[row2, offset]", "[row3, offset]"
    .else
        first8  smlal, \rows, 6, 5, 4, \in0, \in2, 3
    .endif
        last8   smlal, \rows, 7, 6, 5, \in0, \in2, 3
        add     offset, offset, #8
.endm

        // All of `rows` tiles but their sums' store. The first products begin the sums.
.macro  block   rows
        mov     left, depth
        ldr     d0, [row0]
        ld1     {v0.d}[1], [row1]
    .if \rows > 2
        ldr     d1, [row2]
        ld1     {v1.d}[1], [row3]
    .endif
        mov     offset, #8
        four_k  smull, \rows, 0, 1, 2, 3
        b       2f
1:      four_k  smlal, \rows, 0, 1, 2, 3
2:      four_k  smlal, \rows, 2, 3, 0, 1, turn
        b.ne    1b
.endm

.macro  store   s0, s1, s2, s3
        stp     q\s0, q\s1, [to], #32
        stp     q\s2, q\s3, [to], #32
.endm

func    n8_winograd_gemm_s32_neon
        ldp     sums, in, [args, #N8_OFF_WS_SUMS]
        ldp     weights, depth, [args, #N8_OFF_WS_WEIGHTS]
        ldp     tiles, planes, [args, #N8_OFF_WS_TILES]
        ldp     sums_plane, in_plane, [args, #N8_OFF_WS_SUMS_PLANE]

.Lplane:
        mov     next, weights
        mov     row0, in
        mov     to, sums
        ldp     q4, q5, [next], #32
        ldr     d6, [next], #16
        ldr     upper, [next, #-8]
        subs    tiles_left, tiles, #4
        b.lo    .Lpair
.Lfour:
        add     row1, row0, depth, lsl #1
        add     row2, row0, depth, lsl #2
        add     row3, row1, depth, lsl #2
        block   4
        add     row0, row2, depth, lsl #2
        store   16, 17, 18, 19
        store   20, 21, 22, 23
        store   24, 25, 26, 27
        store   28, 29, 30, 31
        subs    tiles_left, tiles_left, #4
        b.hs    .Lfour
        // What is left by pairs, the last of which may be of one tile twice.
.Lpair:
        adds    tiles_left, tiles_left, #4
        b.eq    .Ldone
5:      cmp     tiles_left, #1
        add     row1, row0, depth, lsl #1
        csel    row1, row0, row1, eq
        block   2
        store   16, 17, 18, 19
        add     row0, row1, depth, lsl #1
        subs    tiles_left, tiles_left, #2
        b.lo    .Ldone
        store   20, 21, 22, 23
        b.ne    5b
.Ldone:
        add     weights, weights, depth, lsl #5
        add     in, in, in_plane
        add     sums, sums, sums_plane
        subs    planes, planes, #1
        b.ne    .Lplane

        ret
endfunc n8_winograd_gemm_s32_neon
