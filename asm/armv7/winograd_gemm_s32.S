// SPDX-License-Identifier: Apache-2.0
//
// sums[plane][tile][n] = sum over k of in[plane][tile][k] * weights[plane][k][n], modulo 2^32, for
// n < 8                                                                                   (13)
//
//   void n8_winograd_gemm_s32_neon(const struct n8_winograd_gemm_args *args);
//
// Four tiles at a time, then one. A scalar of 16 bits must be in d0-d7, which eight k of four tiles
// fill; so eight loads serve 64 products, and nothing else would need fewer.
//
//                       q4 q5 q6 q7         weights of 8 channels, four k
//   in q0 q1 q2 q3      q8 .. q15           8 k of each tile; the accumulators of tile r are in
//                                           q8 + 2 * r and the next one
//
// What a product needs is loaded right after the last use of its register, at least 6 products
// before. In the last k nothing is loaded: no byte beyond the arrays is read.
//
// Bounds: products are below 2^28, accumulators wrap.
// Registers: below. Stack: 100 bytes, what it preserves.
#include "asm.h"

        registers r, 0, args, sums, in, weights, depth, tiles, planes, sums_left
        // sums_left: from the end of a plane to the next one
        registers r, 8, in_left, stride, back, next, left
        // stride: from a tile to the next one; back: from the fourth to the first, and eight k on
tiles_left .req lr

// One k of a tile.
.macro  tile    op, s0, s1, w0, w1, in, k
        \op     q\s0, d\w0, d\in[\k]
        \op     q\s1, d\w1, d\in[\k]
.endm

// One k of \rows tiles, lane \k of \t0-\t3.
.macro  one_k   op, rows, w0, w1, k, t0, t1, t2, t3
        tile    \op, 8, 9, \w0, \w1, \t0, \k
    .if \rows == 4
        tile    \op, 10, 11, \w0, \w1, \t1, \k
        tile    \op, 12, 13, \w0, \w1, \t2, \k
        tile    \op, 14, 15, \w0, \w1, \t3, \k
    .endif
.endm

// Eight k of \rows tiles, the first four.
.macro  first4  op, rows
        one_k   \op, \rows, 8, 9, 0, 0, 2, 4, 6
        one_k   vmlal.s16, \rows, 10, 11, 1, 0, 2, 4, 6
        vld1.16 {d8-d11}, [next :128]!
        one_k   vmlal.s16, \rows, 12, 13, 2, 0, 2, 4, 6
        one_k   vmlal.s16, \rows, 14, 15, 3, 0, 2, 4, 6
        vld1.16 {d12-d15}, [next :128]!
.endm

// The last four, while the next eight are loaded if there are any.
.macro  last4   rows, more
        one_k   vmlal.s16, \rows, 8, 9, 0, 1, 3, 5, 7
        one_k   vmlal.s16, \rows, 10, 11, 1, 1, 3, 5, 7
    .if \more
        vld1.16 {d8-d11}, [next :128]!
    .endif
        one_k   vmlal.s16, \rows, 12, 13, 2, 1, 3, 5, 7
    .if !\more
        one_k   vmlal.s16, \rows, 14, 15, 3, 1, 3, 5, 7
    .elseif \rows == 4
        tile    vmlal.s16, 8, 9, 14, 15, 1, 3
        vld1.16 {d0-d1}, [in :128], stride
        tile    vmlal.s16, 10, 11, 14, 15, 3, 3
        vld1.16 {d2-d3}, [in :128], stride
        tile    vmlal.s16, 12, 13, 14, 15, 5, 3
        vld1.16 {d4-d5}, [in :128], stride
        tile    vmlal.s16, 14, 15, 14, 15, 7, 3
        vld1.16 {d6-d7}, [in :128], back
        vld1.16 {d12-d15}, [next :128]!
    .else
        tile    vmlal.s16, 8, 9, 14, 15, 1, 3
        vld1.16 {d0-d1}, [in :128]!
        vld1.16 {d12-d15}, [next :128]!
    .endif
.endm

// The accumulators of \rows tiles, which begin with the first products.
.macro  block   rows
        mov     next, weights
        vld1.16 {d8-d11}, [next :128]!
    .if \rows == 4
        vld1.16 {d0-d1}, [in :128], stride
        vld1.16 {d2-d3}, [in :128], stride
        vld1.16 {d4-d5}, [in :128], stride
        vld1.16 {d6-d7}, [in :128], back
    .else
        vld1.16 {d0-d1}, [in :128]!
    .endif
        vld1.16 {d12-d15}, [next :128]!
        subs    left, depth, #8
        first4  vmull.s16, \rows
        beq     2f
1:      last4   \rows, 1
        subs    left, left, #8
        first4  vmlal.s16, \rows
        bne     1b
2:      last4   \rows, 0
.endm

func    n8_winograd_gemm_s32_neon
        push_all
        ldm     args, {r1-r8}
        lsl     stride, depth, #1
        mls     in_left, tiles, stride, in_left
        sub     sums_left, sums_left, tiles, lsl #5
        add     back, stride, stride, lsl #1
        rsb     back, back, #16

.Lplane:
        subs    tiles_left, tiles, #4
        blo     .Lone
.Lfour:
        block   4
        vst1.32 {d16-d19}, [sums :128]!
        vst1.32 {d20-d23}, [sums :128]!
        vst1.32 {d24-d27}, [sums :128]!
        vst1.32 {d28-d31}, [sums :128]!
        // `in` is after the first tile.
        add     in, in, stride, lsl #1
        add     in, in, stride
        subs    tiles_left, tiles_left, #4
        bhs     .Lfour
.Lone:
        adds    tiles_left, tiles_left, #4
        beq     .Ldone
3:      block   1
        vst1.32 {d16-d19}, [sums :128]!
        subs    tiles_left, tiles_left, #1
        bne     3b
.Ldone:
        ldr     left, [args, #N8_OFF_WS_WEIGHTS_PLANE]
        add     weights, weights, left
        add     in, in, in_left
        add     sums, sums, sums_left
        subs    planes, planes, #1
        bne     .Lplane
        pop_all
endfunc n8_winograd_gemm_s32_neon
