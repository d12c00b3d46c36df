// SPDX-License-Identifier: Apache-2.0
//
// sums[plane][tile][n] = sum over k of in[plane][tile][k] * weights[plane][k][n], modulo 2^32, for
// n < 16                                                                                  (13)
//
//   void n8_winograd_gemm_s32_neon(const struct n8_winograd_gemm_args *args);
//
// Four tiles at a time, then two. The sums of tile r lie in v16 + 4 * r and the next three.
//
//                       v4 v5 v6 v7         weights of 16 channels, one k; v8-v11: the next one
//   in v0 v1 v2 v3      v16 .. v31          4 k of each tile
//
// In-order cores begin a 64-bit load and an operation on 128 bits in the same cycle, and not a
//   128-bit load: all loads of the loop are of 64 bits, each beside a product and at least 4 cycles
//   before its use. After the last k the first operands are loaded once more: the weights are those
//   of the next tiles, nothing beyond the arrays is read.
// Bounds: products are below 2^28, sums wrap.
// Registers: x0-x17, v0-v11, v16-v31, see below.
// Stack: 32 bytes, d8-d11.
#include "asm.h"
#include "kernel.h"

#define args       x0
#define sums       x1
#define in         x2
#define weights    x3
#define depth      x4
#define tiles      x5
#define planes     x6
#define sums_plane x7
#define in_plane   x8
#define left       x15
#define tiles_left x16
#define to         x17
// In arguments of macros, where the preprocessor does not look.
row0               .req x9
row1               .req x10
row2               .req x11
row3               .req x12
next               .req x13
offset             .req x14

        // One k of a tile: four products, each with what may begin in the same cycle.
.macro  tile    op, s0, s1, s2, s3, in, lane, w0, w1, w2, w3, with0, with1, with2, with3
        \op     v\s0\().4s, v\w0\().4h, v\in\().h[\lane]
        \with0
        \op     v\s1\().4s, v\w1\().4h, v\in\().h[\lane]
        \with1
        \op     v\s2\().4s, v\w2\().4h, v\in\().h[\lane]
        \with2
        \op     v\s3\().4s, v\w3\().4h, v\in\().h[\lane]
        \with3
.endm

        // One k of `rows` tiles, while the weights of the next one are loaded into \n0-\n3.
.macro  one_k   op, rows, lane, w0, w1, w2, w3, n0, n1, n2, n3
        tile    \op, 16, 17, 18, 19, 0, \lane, \w0, \w1, \w2, \w3, \
                "ldr d\n0, [next], #8", "ldr d\n1, [next], #8", \
                "ldr d\n2, [next], #8", "ldr d\n3, [next], #8"
        tile    \op, 20, 21, 22, 23, 1, \lane, \w0, \w1, \w2, \w3
    .if \rows > 2
        tile    \op, 24, 25, 26, 27, 2, \lane, \w0, \w1, \w2, \w3
        tile    \op, 28, 29, 30, 31, 3, \lane, \w0, \w1, \w2, \w3
    .endif
.endm

        // The last of four k: the next four of each tile are loaded, too.
.macro  last_k  rows
        tile    smlal, 16, 17, 18, 19, 0, 3, 8, 9, 10, 11, "ldr d4, [next], #8", \
                "ldr d5, [next], #8", "ldr d6, [next], #8", "ldr d7, [next], #8"
    .if \rows == 2
        tile    smlal, 20, 21, 22, 23, 1, 3, 8, 9, 10, 11, "ldr d0, [row0, offset]", , , \
                "ldr d1, [row1, offset]"
    .else
        tile    smlal, 20, 21, 22, 23, 1, 3, 8, 9, 10, 11, "ldr d0, [row0, offset]"
        tile    smlal, 24, 25, 26, 27, 2, 3, 8, 9, 10, 11, "ldr d1, [row1, offset]"
        tile    smlal, 28, 29, 30, 31, 3, 3, 8, 9, 10, 11, "ldr d2, [row2, offset]", , , \
                "ldr d3, [row3, offset]"
    .endif
.endm

        // All of `rows` tiles but their sums' store. The first products begin the sums.
.macro  block   rows
        mov     left, depth
        ldr     d0, [row0]
        ldr     d1, [row1]
    .if \rows > 2
        ldr     d2, [row2]
        ldr     d3, [row3]
    .endif
        mov     offset, #8
        one_k   smull, \rows, 0, 4, 5, 6, 7, 8, 9, 10, 11
        b       2f
1:      one_k   smlal, \rows, 0, 4, 5, 6, 7, 8, 9, 10, 11
2:      one_k   smlal, \rows, 1, 8, 9, 10, 11, 4, 5, 6, 7
        subs    left, left, #4
        one_k   smlal, \rows, 2, 4, 5, 6, 7, 8, 9, 10, 11
        csel    offset, xzr, offset, eq
        csel    next, weights, next, eq
        last_k  \rows
        add     offset, offset, #8
        b.ne    1b
.endm

.macro  store   s0, s1, s2, s3
        stp     q\s0, q\s1, [to], #32
        stp     q\s2, q\s3, [to], #32
.endm

func    n8_winograd_gemm_s32_neon
        enter   32, d8, d9, d10, d11
        ldp     sums, in, [args, #N8_OFF_WS_SUMS]
        ldp     weights, depth, [args, #N8_OFF_WS_WEIGHTS]
        ldp     tiles, planes, [args, #N8_OFF_WS_TILES]
        ldp     sums_plane, in_plane, [args, #N8_OFF_WS_SUMS_PLANE]

.Lplane:
        mov     next, weights
        mov     row0, in
        mov     to, sums
        ldp     d4, d5, [next], #16
        ldp     d6, d7, [next], #16
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

        leave   32, d8, d9, d10, d11
        ret
endfunc n8_winograd_gemm_s32_neon
