// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM in tiles of 8 pixels x 8 channels, by dot products or products of matrices:
//
//   acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[t][p][k] * w[n][t][k]     (3)(12)
//   s32   out[p][n] = acc''[p][n]
//   f32   out[p][n] = fadd(fmul((float) acc''[p][n], multiplier[n]), bias_f32[n])              (4)
//   s8    v = fmul((float) acc''[p][n], multiplier[n]),
//   add   v = fadd(that, fmul((float)(residual[p][n] - residual_zero_point), residual_scale))  (6)
//         leaky by slope[n] if there is one                                                 (5b)
//         out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                     (5)
//
//   void n8_igemm_s8_...(const struct n8_igemm_args *args);
//
// An instance of `igemm`, at the end of this file, is the kernels of all kinds for a level: loops
// over tiles of channels (outer) and of pixels (inner). For a tile it takes one of the macros
// sums_..., which differ by level, by the core that they were ordered for, and by rows: plain,
// packed, or transformed by (23); then an epilogue (scale, add_bias, add_residual, round_tile) and
// stores (store8, store32).
//
// The sums of pixel p lie in v16 + 2 * p, channels 0-3, and v17 + 2 * p, channels 4-7. Between the
//   parts: pixels and channels left (over 8 where tiles follow); out, residual: this tile's;
//   offset = 4 * its first channel; cursor: the pointers of the tile, its packed rows or, of (23),
//   its bytes in a row of tiles, which the sums leave at those of the next one. The sums and the
//   epilogue may use v0-v15, ptr0-ptr7, weights, left, taps_left and link, where x30 is during a
//   call.
// Stack: 384 bytes: callee-saved registers; the first sums of a tile, vectors for its rounding.
// The layout of all arrays: runtime/kernel.h, whose demands runtime/conv proves.
//
// Where sums are small (kernel.h), they begin with the bias and the bits of the float 1.5 * 2^23.
// These and acc'' make those of 1.5 * 2^23 + acc'', from which a subtraction leaves acc'', exactly.
// Where results are small, 1.5 * 2^23 + v has no bit for a fraction: the addition rounds v, half to
// even, and leaves rne(v) in the low 16 bits; with an even zero point added to 1.5 * 2^23, rne(v) +
// zero_point.
// Either is cheaper than a conversion, which only one pipe of an out-of-order core can do. Where
// kernels are ordered for a core that issues in order, sums begin without those bits, and are
// converted. See numerics.md, Compilers. Where there is a `start` (5d), one fused multiply-add does
// all of this, and adds any zero point.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, ptr0, ptr1, ptr2, ptr3, ptr4, ptr5, ptr6
        registers x, 8, ptr7, weights, panel, cursor, left, depth, taps_left, taps
        registers x, 16, channels, link
        registers x, 19, pixels, after, out, out_stride, offset
        registers x, 24, residual, upper, tile, by16
zero_point .req w28
        // zero_point: its lowest bit; bits 1 and 2: whether lo and hi clamp; bits 3 to 6: kind; bit
        // 7: results are small; bit 8: sums are, and begin with the bits of 1.5 * 2^23; bit 9:
        // results are small, and s8_s8; bit 10: the channels have a start. tile: its pixels, 8, or
        // 7 of kernels whose rows are in sevens. For cores that issue in order: bit 11: lo or hi
        // clamps; bit 30: the tile ends where the next begins; bit 31: by (5d); panel, where
        // weights go on after this tile; upper, of halves of weights; by16, 16
kind    .req w6                 // of a kernel as it begins
#define SAVED           D8_TO_D15, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28

// Places on the stack, 16 bytes each if nothing else is said.
#define FRAME           384
#define BIAS            144     // 64 bytes: the first sums; packed: of 2 pixels and 2 channels each
#define MAGIC           208     // 1.5 * 2^23
#define ROUNDING        224     // 1.5 * 2^23, and the zero point if it is even
#define ZERO_POINT      240
#define LO              256
#define HI              272
#define START           288     // integers: the bits of 1.5 * 2^23 where sums begin with them, or 0
#define STEPS           304     // 8 bytes: how many times 8 bytes a tap has before its last 4 or 8
#define ADDENDS         320     // 64 bytes: of (5d), packed; of 2 pixels and 2 channels each

// The sums as vectors of words: of channels 0-3, of 4-7, all, and all but the first four.
#define LOW_SUMS  v16.4s, v18.4s, v20.4s, v22.4s, v24.4s, v26.4s, v28.4s, v30.4s
#define HIGH_SUMS v17.4s, v19.4s, v21.4s, v23.4s, v25.4s, v27.4s, v29.4s, v31.4s
#define LATE_SUMS v20.4s, v21.4s, v22.4s, v23.4s, v24.4s, v25.4s, v26.4s, v27.4s, v28.4s, v29.4s, \
                  v30.4s, v31.4s
#define ALL_SUMS  v16.4s, v17.4s, v18.4s, v19.4s, LATE_SUMS

.macro  join_halves
        uzp1    v16.8h, v16.8h, v17.8h
        uzp1    v18.8h, v18.8h, v19.8h
        uzp1    v20.8h, v20.8h, v21.8h
        uzp1    v22.8h, v22.8h, v23.8h
        uzp1    v24.8h, v24.8h, v25.8h
        uzp1    v26.8h, v26.8h, v27.8h
        uzp1    v28.8h, v28.8h, v29.8h
        uzp1    v30.8h, v30.8h, v31.8h
.endm

.macro  narrow
        sqxtn   v16.8b, v16.8h
        sqxtn   v20.8b, v20.8h
        sqxtn   v24.8b, v24.8h
        sqxtn   v28.8b, v28.8h
        sqxtn2  v16.16b, v18.8h
        sqxtn2  v20.16b, v22.8h
        sqxtn2  v24.16b, v26.8h
        sqxtn2  v28.16b, v30.8h
.endm

.macro  add_zero_point by
        each    sqadd, \by\().8h, v16.8h, v18.8h, v20.8h, v22.8h, v24.8h, v26.8h, v28.8h, v30.8h
.endm

.macro  each_half op, low, high
        .irp    sum, LOW_SUMS
        \op     \sum, \sum, \low\().4s
        .endr
        .irp    sum, HIGH_SUMS
        \op     \sum, \sum, \high\().4s
        .endr
.endm

// Parts that are functions --------------------------------------------------------------------
//
// What kernels need where values are not small, between the two halves of (23), and at the edge.
// A kernel's own return address stays in a register meanwhile, where nobody can overwrite it.

.macro  call    part
        mov     link, x30
        .cfi_register x30, x17
        bl      n8_igemm_8x8_\part
        mov     x30, link
        .cfi_restore x30
.endm

array   .req x4

// Sums of a tile to floats: fmul((float) acc'', multiplier[n]). scvtf rounds to nearest even (7).
// Changes v0, v1 and x4.
func    n8_igemm_8x8_scale
        ldr     array, [args, #N8_OFF_IG_MULTIPLIER]
        in_place scvtf, v16.4s, v17.4s, v18.4s, v19.4s
        add     array, array, offset
        ldp     q0, q1, [array]
        in_place scvtf, LATE_SUMS
        each_half fmul, v0, v1
        ret
endfunc n8_igemm_8x8_scale

// (5d): sums of a tile that began with a start, to 16 bits, pixel p in v16 + 2 * p, by the multipliers
// and what is added. Changes v0-v15.
//
// Bounds: kernel.h says that the low 16 bits are all.
.macro  fuse    low, high, addend_low, addend_high
        fmla    v\addend_low\().4s, v\low\().4s, v14.4s
        fmla    v\addend_high\().4s, v\high\().4s, v15.4s
        uzp1    v\low\().8h, v\addend_low\().8h, v\addend_high\().8h
.endm

.macro  fuse_tile multipliers, addends
        ldp     q14, q15, [\multipliers]
        ldp     q0, q1, [\addends]
        ldp     q2, q3, [\addends]
        ldp     q4, q5, [\addends]
        ldp     q6, q7, [\addends]
        ldp     q8, q9, [\addends]
        ldp     q10, q11, [\addends]
        ldp     q12, q13, [\addends]
        fuse    16, 17, 0, 1
        ldp     q0, q1, [\addends]
        fuse    18, 19, 2, 3
        fuse    20, 21, 4, 5
        fuse    22, 23, 6, 7
        fuse    24, 25, 8, 9
        fuse    26, 27, 10, 11
        fuse    28, 29, 12, 13
        fuse    30, 31, 0, 1
.endm

// Both arrays, at this tile's channels.
.macro  fuse_by multipliers, addends
        ldr     \multipliers, [args, #N8_OFF_IG_MULTIPLIER]
        ldr     \addends, [args, #N8_OFF_IG_BIAS_F32]
        add     \multipliers, \multipliers, offset
        add     \addends, \addends, offset
.endm

func    n8_igemm_8x8_fused
        fuse_by ptr0, ptr1
        fuse_tile ptr0, ptr1
        ret
endfunc n8_igemm_8x8_fused

// Floats of a tile to 16 bits, pixel p in v16 + 2 * p: leaky by the slopes if there are any (5b),
// and rounded (5). Changes v12-v15 and x4.
//
// Bounds: fcvtns saturates to 32 bits, sqxtn to 16; NaN becomes 0.
func    n8_igemm_8x8_round
        ldr     array, [args, #N8_OFF_IG_SLOPE]
        cbz     array, 1f
        add     array, array, offset
        ldp     q14, q15, [array]
        leaky   v14, v12, v13, v16, v18, v20, v22, v24, v26, v28, v30
        leaky   v15, v12, v13, v17, v19, v21, v23, v25, v27, v29, v31
1:      in_place fcvtns, ALL_SUMS
        .irp    row, 16, 18, 20, 22, 24, 26, 28, 30
        sqxtn   v\row\().4h, v\row\().4s
        .endr
        sqxtn2  v16.8h, v17.4s
        sqxtn2  v18.8h, v19.4s
        sqxtn2  v20.8h, v21.4s
        sqxtn2  v22.8h, v23.4s
        sqxtn2  v24.8h, v25.4s
        sqxtn2  v26.8h, v27.4s
        sqxtn2  v28.8h, v29.4s
        sqxtn2  v30.8h, v31.4s
        ret
endfunc n8_igemm_8x8_round

// Between the two halves of the taps of (23): the sums a of the first side and b of the second of
// each tile become a + b and a - b, in the whole form halved. Changes v12-v14 and x7.
//
// Where values are small, sums begin with the bits of 1.5 * 2^23, here those of the first side; v14
// is these or 0. Both get them from it, and the half of them in the whole form, to which the other
// half is added.
// Bounds: shadd and shsub have a bit more than their operands, which must fit int32 themselves, and
//   do: those bits come with sums below 2^23. All else wraps modulo 2^32, and so does what is added
//   later, until the result fits (12).
.macro  butterfly a0, b0, a1, b1
        add     v12.4s, v\a0\().4s, v\b0\().4s
        add     v13.4s, v\a1\().4s, v\b1\().4s
        sub     v\b0\().4s, v\a0\().4s, v\b0\().4s
        sub     v\b1\().4s, v\a1\().4s, v\b1\().4s
        mov     v\a0\().16b, v12.16b
        mov     v\a1\().16b, v13.16b
.endm

.macro  butterfly_halved a0, b0, a1, b1
        shadd   v12.4s, v\a0\().4s, v\b0\().4s
        shadd   v13.4s, v\a1\().4s, v\b1\().4s
        shsub   v\b0\().4s, v\a0\().4s, v\b0\().4s
        shsub   v\b1\().4s, v\a1\().4s, v\b1\().4s
        add     v\a0\().4s, v12.4s, v14.4s
        add     v\a1\().4s, v13.4s, v14.4s
        add     v\b0\().4s, v\b0\().4s, v14.4s
        add     v\b1\().4s, v\b1\().4s, v14.4s
.endm

func    n8_igemm_8x8_halves
        ldr     w7, [args, #N8_OFF_IG_WHOLE]
        cbz     w7, 1f
        sshr    v14.4s, v14.4s, #1
        butterfly_halved 16, 18, 17, 19
        butterfly_halved 20, 22, 21, 23
        butterfly_halved 24, 26, 25, 27
        butterfly_halved 28, 30, 29, 31
        b       2f
1:      butterfly 16, 18, 17, 19
        butterfly 20, 22, 21, 23
        butterfly 24, 26, 25, 27
        butterfly 28, 30, 29, 31
2:      ret
endfunc n8_igemm_8x8_halves

// Stores a tile that ends before 8 pixels or channels, whose bytes lie as `store8` says, from ptr0
// on: one pixel after the other moves down to the low half of v16.
// Changes v0, v16, v20, v24, v28, x1, x2 and x12.
func    n8_igemm_8x8_edge
        cmp     pixels, tile
        csel    left, pixels, tile, lo
1:      cmp     channels, #8
        b.lo    2f
        str     d16, [ptr0]
        b       5f
2:      mov     ptr1, ptr0
        mov     v0.8b, v16.8b
        tbz     channels, #2, 3f
        st1     {v0.s}[0], [ptr1], #4
        ext     v0.8b, v0.8b, v0.8b, #4
3:      tbz     channels, #1, 4f
        st1     {v0.h}[0], [ptr1], #2
        ext     v0.8b, v0.8b, v0.8b, #2
4:      tbz     channels, #0, 5f
        st1     {v0.b}[0], [ptr1]
5:      ext     v16.16b, v16.16b, v20.16b, #8
        ext     v20.16b, v20.16b, v24.16b, #8
        ext     v24.16b, v24.16b, v28.16b, #8
        ext     v28.16b, v28.16b, v28.16b, #8
        add     ptr0, ptr0, out_stride
        subs    left, left, #1
        b.ne    1b
        ret
endfunc n8_igemm_8x8_edge

// Sums by dot products of 4 bytes -------------------------------------------------------------
//
// Bounds: sdot adds exact products to int32, which is proved by (12).

        // The products of 4 bytes, the `group`th of 16, of a pixel, and what may begin beside them.
.macro  dots    pixel_bytes, group, sum0, sum1, low, high, with0, with1
        sdot    v\sum0\().4s, \low\().16b, v\pixel_bytes\().4b[\group]
        \with0
        sdot    v\sum1\().4s, \high\().16b, v\pixel_bytes\().4b[\group]
        \with1
.endm

        // The same of 2 pixels, 4 or 8.
.macro  dots2   group, low, high
        dots    0, \group, 16, 17, \low, \high
        dots    1, \group, 18, 19, \low, \high
.endm

.macro  dots4   group, low, high
        dots2   \group, \low, \high
        dots    2, \group, 20, 21, \low, \high
        dots    3, \group, 22, 23, \low, \high
.endm

.macro  dots8   group, low, high
        dots4   \group, \low, \high
        dots    4, \group, 24, 25, \low, \high
        dots    5, \group, 26, 27, \low, \high
        dots    6, \group, 28, 29, \low, \high
        dots    7, \group, 30, 31, \low, \high
.endm

// For out-of-order cores.
//
//                       w v8 v9, v10 v11, v12 v13, v14 v15     4 x 4 bytes of 8 channels
//          a v0-v7      v16-v31                                16 bytes of 8 pixels
//
// First 16 bytes at a time of all taps. Each time the pointers are loaded anew, where a tap ends
// those of the next one, without a branch: an out-of-order core has room for that beside 64
// products. Then 4 bytes at a time what is left of all taps.
whole   .req x17                // the bytes of a tap that make up 16 each

        // Between 16 bytes: on to the next ones, or to those of the next tap; and their products,
        // by `dots`.
.macro  sixteen dots
        ldp     q10, q11, [weights, #32]
        ldp     q12, q13, [weights, #64]
        ldp     q14, q15, [weights, #96]
        add     weights, weights, #128
        add     left, left, #16
        add     ptr0, cursor, #64
        cmp     left, whole
        csel    cursor, ptr0, cursor, eq
        csel    left, xzr, left, eq
        sub     ptr1, depth, whole
        csel    ptr1, ptr1, xzr, eq
        cset    ptr2, eq
        add     weights, weights, ptr1, lsl #3
        sub     taps_left, taps_left, ptr2
        \dots   0, v8, v9
        \dots   1, v10, v11
        \dots   2, v12, v13
        \dots   3, v14, v15
.endm

// A full tile by (5d) with no limits but those of saturation ends here at once, and the next one
// begins: `after` is the 8 pixels that it needs, or more than there are where a panel has none such;
// upper and by16 are the arrays of (5d) then. Its sums, too, take few branches.
.macro  sums_dotprod
        mov     ptr0, #0x406
        mov     ptr1, #0x400
        and     ptr0, ptr0, x28         // zero_point
        ands    whole, depth, #-16
        ccmp    channels, #8, #0, ne
        mov     after, #-1
        ccmp    ptr0, ptr1, #0, hs
        b.ne    9f
        mov     after, tile
        fuse_by by16, upper
        // Half of them by each kind of pipe.
9:      ldp     q16, q17, [sp, #BIAS]
        ldp     q18, q19, [sp, #BIAS]
        ldp     q20, q21, [sp, #BIAS]
        ldp     q22, q23, [sp, #BIAS]
        fill    mov, v16.16b, v24.16b, v26.16b, v28.16b, v30.16b
        fill    mov, v17.16b, v25.16b, v27.16b, v29.16b, v31.16b
10:     mov     left, #0
        cbz     whole, 2f
        cmp     pixels, #4
        b.ls    6f

        // 16 bytes.
1:      ldp     ptr0, ptr1, [cursor]
        ldp     ptr2, ptr3, [cursor, #16]
        ldp     q8, q9, [weights]
        ldp     ptr4, ptr5, [cursor, #32]
        ldp     ptr6, ptr7, [cursor, #48]
        ldr     q0, [ptr0, left]
        ldr     q1, [ptr1, left]
        ldr     q2, [ptr2, left]
        ldr     q3, [ptr3, left]
        ldr     q4, [ptr4, left]
        ldr     q5, [ptr5, left]
        ldr     q6, [ptr6, left]
        ldr     q7, [ptr7, left]
        sixteen dots8
        cbnz    taps_left, 1b
3:      cmp     whole, depth
        ccmp    pixels, after, #0, eq
        b.lo    11f

7:      fuse_tile by16, upper
        narrow
        st1     {v16.8b}, [out], out_stride
        st1     {v16.d}[1], [out], out_stride
        st1     {v20.8b}, [out], out_stride
        st1     {v20.d}[1], [out], out_stride
        st1     {v24.8b}, [out], out_stride
        st1     {v24.d}[1], [out], out_stride
        st1     {v28.8b}, [out], out_stride
        st1     {v28.d}[1], [out], out_stride
        ldp     q16, q17, [sp, #BIAS]
        ldp     q18, q19, [sp, #BIAS]
        ldp     q20, q21, [sp, #BIAS]
        ldp     q22, q23, [sp, #BIAS]
        ldp     q24, q25, [sp, #BIAS]
        ldp     q26, q27, [sp, #BIAS]
        ldp     q28, q29, [sp, #BIAS]
        ldp     q30, q31, [sp, #BIAS]
        mov     weights, panel
        mov     taps_left, taps
        mov     left, #0
        sub     pixels, pixels, tile
        cmp     pixels, #4
        b.hi    1b
        cbnz    pixels, 10b
        b       20f

        // No 16 bytes.
2:      add     cursor, cursor, taps, lsl #6

11:     cmp     whole, depth
        b.eq    12f
        sub     cursor, cursor, taps, lsl #6
        add     weights, panel, whole, lsl #3
        mov     taps_left, taps

        // 4 bytes, of 8 pixels in any case.
4:      ldp     ptr0, ptr1, [cursor]
        ldp     ptr2, ptr3, [cursor, #16]
        ldp     ptr4, ptr5, [cursor, #32]
        ldp     ptr6, ptr7, [cursor, #48]
        add     cursor, cursor, #64
        mov     left, whole
5:      ldp     q8, q9, [weights], #32
        ldr     s0, [ptr0, left]
        ldr     s1, [ptr1, left]
        ldr     s2, [ptr2, left]
        ldr     s3, [ptr3, left]
        ldr     s4, [ptr4, left]
        ldr     s5, [ptr5, left]
        ldr     s6, [ptr6, left]
        ldr     s7, [ptr7, left]
        add     left, left, #4
        dots8   0, v8, v9
        cmp     left, depth
        b.ne    5b
        add     weights, weights, whole, lsl #3
        subs    taps_left, taps_left, #1
        b.ne    4b
        cmp     pixels, after
        b.hs    7b
        b       12f

        // 16 bytes of a tile with 4 pixels at most.
6:
        cmp     pixels, #2
        b.ls    8f
        ldp     ptr0, ptr1, [cursor]
        ldp     ptr2, ptr3, [cursor, #16]
        ldp     q8, q9, [weights]
        ldr     q0, [ptr0, left]
        ldr     q1, [ptr1, left]
        ldr     q2, [ptr2, left]
        ldr     q3, [ptr3, left]
        sixteen dots4
        cbnz    taps_left, 6b
        b       3b

        // The same with 2 pixels at most, as 7 x 7 leave.
8:      ldp     ptr0, ptr1, [cursor]
        ldp     q8, q9, [weights]
        ldr     q0, [ptr0, left]
        ldr     q1, [ptr1, left]
        sixteen dots2
        cbnz    taps_left, 8b
        b       3b
12:
.endm

// For cores that issue in order.
//
//                       w v8 v9, v10 v11     2 x 4 bytes of 8 channels
//          a v0-v7      v16-v31              8 bytes of 8 pixels
//
// Such a core issues a load of 64 bits beside a product, but none of 128. So an sdot is followed by
// a load of what is multiplied some 16 products later, be it of the next tap, and weights come in
// two halves; the upper one would wait for the lower if it followed at once. When 8 bytes begin,
// v0-v5, v8 and v9 are there, and v6 and v7 are next: their places are the branches'.
// After the last tap, what is loaded are the first weights and rows of the next tile, be it of the
// next panel. Then a full tile of floats or of small values goes on there: in its epilogue v12 and
// v13 hold what is added, or the number for rounding twice, v14 and v15 the multipliers, from the
// first tile of the panel on, and the next tile's first sums are loaded meanwhile: long before `ins`
// or the product that needs them, since whatever follows in the order of the program waits with it.
// What the panel's last tile needs is found after the one before. Any other tile begins anew.
// Such a core converts as fast as it subtracts: no sum begins with the bits of 1.5 * 2^23.
next    .req x17
first   .req x20                // where the first sums of the tile after this lie
addends .req x24                // what (5d) or floats add, as nothing adds a residual then

        // The second 4 of 8 bytes, while the first ones of the next 8 are loaded. with2 may go on at
        // 10, past the products of the eighth pixel.
.macro  second_dots with0, with1, with2, with3, with4, with5
        dots    0, 1, 16, 17, v10, v11, "ldr d8, [weights], #16", "ldr d0, [ptr0], #8"
        dots    1, 1, 18, 19, v10, v11, "ldr d9, [weights], #16", "ldr d1, [ptr1], #8"
        dots    2, 1, 20, 21, v10, v11, "\with0", "ldr d2, [ptr2], #8"
        dots    3, 1, 22, 23, v10, v11, "ld1 {v8.d}[1], [upper], by16", "ldr d3, [ptr3], #8"
        dots    4, 1, 24, 25, v10, v11, "ld1 {v9.d}[1], [upper], by16", "ldr d4, [ptr4], #8"
        dots    5, 1, 26, 27, v10, v11, "\with1", "ldr d5, [ptr5], #8"
        sdot    v28.4s, v10.16b, v6.4b[1]
        \with2
        dots    7, 1, 30, 31, v10, v11, "\with3", "\with4"
10:     sdot    v29.4s, v11.16b, v6.4b[1]
        \with5
.endm

        // The first 4 of 8 bytes, with what there is to do meanwhile. with8 may go on after them.
.macro  first_dots with1, with2, with3, with4, with5, with6, with7, with8, with9, with10
        dots    0, 0, 16, 17, v8, v9, "ldr d7, [ptr7], #8", "ldr d10, [weights], #16"
        dots    1, 0, 18, 19, v8, v9, "ldr d11, [weights], #16", "ldr d6, [ptr6], #8"
        dots    2, 0, 20, 21, v8, v9, "\with1", "ld1 {v10.d}[1], [upper], by16"
        dots    3, 0, 22, 23, v8, v9, "ld1 {v11.d}[1], [upper], by16", "\with2"
        dots    4, 0, 24, 25, v8, v9, "\with3", "\with4"
        dots    5, 0, 26, 27, v8, v9, "\with5", "\with6"
        dots    6, 0, 28, 29, v8, v9, "\with7", "\with8"
        dots    7, 0, 30, 31, v8, v9, "\with9", "\with10"
10:
.endm

        // In a tile of 7 pixels the eighth has no products until a tap's last ones, beside which
        // there is something to do; nobody reads its sums.
#define IF_EIGHT        "tbz tile, #3, 10f"

        // The rows that follow a tap: of the next one, of the next tile or, after the last one of a
        // panel, of the first. In parts, for places beside products.
#define BESIDE(...)     QUOTE(__VA_ARGS__)
#define FIRST_ROWS      BESIDE(ldr next, [args, #N8_OFF_IG_ROWS])
#define IS_LAST_TILE    "cmp pixels, tile"
#define IS_LAST_TAP     "ccmp taps_left, #1, #0, ls"
#define ROWS_THEN       "csel next, next, cursor, eq"
#define STEPS_OF_TAP    BESIDE(ldr left, [sp, #STEPS])

        // The limits of four pixels: both, where there is one.
.macro  limits  a, b, by
        tbz     zero_point, #11, 10f
        ldr     q\by, [sp, #LO]
        smax    \a\().16b, \a\().16b, v\by\().16b
        smax    \b\().16b, \b\().16b, v\by\().16b
        ldr     q\by, [sp, #HI]
        smin    \a\().16b, \a\().16b, v\by\().16b
        smin    \b\().16b, \b\().16b, v\by\().16b
10:
.endm

        // The end of a full tile, and the first sums of the next: of floats, or of small values.
.macro  finish
        add     taps_left, sp, #ZERO_POINT
        in_place scvtf, ALL_SUMS
        ld1r    {v7.8h}, [taps_left]
        sub     pixels, pixels, tile
        ldr     next, [first, #8]
        ldr     left, [first, #24]
        each_half fmul, v14, v15
        cmp     pixels, tile
        each_half fadd, v12, v13
        mov     taps_left, taps
        tbz     zero_point, #5, 19f

        str     q17, [out, #16]
        ldr     d17, [first, #16]
        st1     {v16.4s}, [out], out_stride
        ldr     d16, [first]
        str     q19, [out, #16]
        ldr     d19, [first, #16]
        st1     {v18.4s}, [out], out_stride
        ldr     d18, [first]
        str     q21, [out, #16]
        ins     v17.d[1], left
        st1     {v20.4s}, [out], out_stride
        ins     v16.d[1], next
        str     q23, [out, #16]
        ins     v19.d[1], left
        st1     {v22.4s}, [out], out_stride
        ins     v18.d[1], next
        str     q25, [out, #16]
        mov     v21.16b, v17.16b
        st1     {v24.4s}, [out], out_stride
        mov     v20.16b, v16.16b
        str     q27, [out, #16]
        mov     v23.16b, v17.16b
        st1     {v26.4s}, [out], out_stride
        mov     v22.16b, v16.16b
        str     q29, [out, #16]
        mov     v25.16b, v17.16b
        st1     {v28.4s}, [out], out_stride
        mov     v24.16b, v16.16b
        str     q31, [out, #16]
        mov     v27.16b, v17.16b
        st1     {v30.4s}, [out], out_stride
        mov     v26.16b, v16.16b
        mov     v29.16b, v17.16b
        mov     v28.16b, v16.16b
        b       18f

19:     uzp1    v16.8h, v16.8h, v17.8h
        uzp1    v18.8h, v18.8h, v19.8h
        ldr     d17, [first, #16]
        uzp1    v20.8h, v20.8h, v21.8h
        ldr     d19, [first, #16]
        uzp1    v22.8h, v22.8h, v23.8h
        ldr     d21, [first, #16]
        uzp1    v24.8h, v24.8h, v25.8h
        uzp1    v26.8h, v26.8h, v27.8h
        ins     v17.d[1], left
        uzp1    v28.8h, v28.8h, v29.8h
        ins     v19.d[1], left
        uzp1    v30.8h, v30.8h, v31.8h
        tbz     zero_point, #0, 10f
        add_zero_point v7
10:     sqxtn   v10.8b, v16.8h
        ldr     d16, [first]
        sqxtn   v11.8b, v20.8h
        ldr     d20, [first]
        sqxtn   v6.8b, v24.8h
        ins     v21.d[1], left
        sqxtn   v7.8b, v28.8h
        sqxtn2  v10.16b, v18.8h
        ldr     d18, [first]
        sqxtn2  v11.16b, v22.8h
        ins     v16.d[1], next
        sqxtn2  v6.16b, v26.8h
        ins     v20.d[1], next
        sqxtn2  v7.16b, v30.8h
        ins     v18.d[1], next
        mov     v23.16b, v17.16b
        limits  v10, v11, 24
        mov     v25.16b, v17.16b
        st1     {v10.8b}, [out], out_stride
        mov     v22.16b, v16.16b
        st1     {v10.d}[1], [out], out_stride
        mov     v24.16b, v16.16b
        limits  v6, v7, 26
        mov     v27.16b, v17.16b
        st1     {v11.8b}, [out], out_stride
        mov     v26.16b, v16.16b
        st1     {v11.d}[1], [out], out_stride
        mov     v29.16b, v17.16b
        st1     {v6.8b}, [out], out_stride
        mov     v28.16b, v16.16b
        st1     {v6.d}[1], [out], out_stride
        st1     {v7.8b}, [out], out_stride
        tbz     tile, #3, 18f
        st1     {v7.d}[1], [out], out_stride
18:     mov     v30.16b, v16.16b
        ldr     left, [sp, #STEPS]
        mov     v31.16b, v17.16b
.endm

        // And by (5d), but for what may stand beside products: v12 and v13 hold what is added. The
        // flags are `lo` unless a full tile of the panel follows, of more than 16 bytes a tap.
.macro  finish_fused
        mov     v11.16b, v13.16b
        mov     v6.16b, v12.16b
        sub     pixels, pixels, tile
        mov     v7.16b, v13.16b
        ldr     taps_left, [addends, #8]
        mov     v10.16b, v12.16b
        fmla    v6.4s, v20.4s, v14.4s
        mov     v20.16b, v12.16b
        fmla    v10.4s, v16.4s, v14.4s
        fmla    v11.4s, v17.4s, v15.4s
        mov     v16.16b, v12.16b
        ldr     next, [first, #8]
        cmp     depth, #16
        fmla    v20.4s, v22.4s, v14.4s
        fmla    v7.4s, v21.4s, v15.4s
        uzp1    v10.8h, v10.8h, v11.8h
        ldr     d11, [addends]
        mov     v17.16b, v13.16b
        ldr     left, [first, #24]
        ccmp    pixels, tile, #0, hi
        fmla    v16.4s, v18.4s, v14.4s
        ldr     d22, [first]
        uzp1    v6.8h, v6.8h, v7.8h
        mov     v21.16b, v13.16b
        fmla    v17.4s, v19.4s, v15.4s
        ldr     d18, [first]
        mov     v7.16b, v13.16b
        ins     v11.d[1], taps_left
        ins     v22.d[1], next
        sqxtn   v10.8b, v10.8h
        fmla    v21.4s, v23.4s, v15.4s
        ldr     d19, [first, #16]
        fmla    v11.4s, v24.4s, v14.4s
        ins     v18.d[1], next
        sqxtn   v6.8b, v6.8h
        ldr     d24, [addends]
        fmla    v7.4s, v25.4s, v15.4s
        ldr     d23, [first, #16]
        uzp1    v16.8h, v16.8h, v17.8h
        ldr     d17, [first, #16]
        uzp1    v20.8h, v20.8h, v21.8h
        ldr     d21, [first, #16]
        ins     v24.d[1], taps_left
        mov     v25.16b, v13.16b
        ins     v19.d[1], left
        sqxtn2  v6.16b, v20.8h
        fmla    v25.4s, v27.4s, v15.4s
        ldr     d27, [first, #16]
        sqxtn2  v10.16b, v16.8h
        limits  v10, v6, 16
        fmla    v24.4s, v26.4s, v14.4s
        ins     v23.d[1], left
        uzp1    v11.8h, v11.8h, v7.8h
        ldr     d20, [first]
        st1     {v10.8b}, [out], out_stride
        mov     v7.16b, v12.16b
        ins     v27.d[1], left
        mov     v26.16b, v13.16b
        st1     {v10.d}[1], [out], out_stride
        fmla    v7.4s, v28.4s, v14.4s
        uzp1    v24.8h, v24.8h, v25.8h
        ldr     d16, [first]
        fmla    v26.4s, v29.4s, v15.4s
        ins     v21.d[1], left
        mov     v28.16b, v12.16b
        ins     v20.d[1], next
        mov     v29.16b, v13.16b
        ldr     d25, [first, #16]
        fmla    v28.4s, v30.4s, v14.4s
        ldr     d30, [first]
        st1     {v6.8b}, [out], out_stride
        uzp1    v7.8h, v7.8h, v26.8h
        sqxtn   v11.8b, v11.8h
        ldr     d26, [first]
        fmla    v29.4s, v31.4s, v15.4s
        ins     v17.d[1], left
        sqxtn   v7.8b, v7.8h
        st1     {v6.d}[1], [out], out_stride
.endm

        // The rest, beside the first 8 bytes of the tile that follows.
.macro  finish_fused_beside
        ins     v16.d[1], next
        ldr     d10, [weights], #16
        sqxtn2  v11.16b, v24.8h
        ldr     d31, [first, #16]
        uzp1    v28.8h, v28.8h, v29.8h
        ins     v25.d[1], left
        sdot    v23.4s, v9.16b, v3.4b[0]
        ldr     d24, [first]
        sdot    v16.4s, v8.16b, v0.4b[0]
        sqxtn2  v7.16b, v28.8h
        limits  v11, v7, 6
        sdot    v25.4s, v9.16b, v4.4b[0]
        ins     v26.d[1], next
        sdot    v20.4s, v8.16b, v2.4b[0]
        st1     {v11.8b}, [out], out_stride
        st1     {v11.d}[1], [out], out_stride
        ld1     {v10.d}[1], [upper], by16
        ldr     d11, [weights], #16
        sdot    v22.4s, v8.16b, v3.4b[0]
        sdot    v26.4s, v8.16b, v5.4b[0]
        ldr     d28, [first]
        st1     {v7.8b}, [out], out_stride
        sdot    v18.4s, v8.16b, v1.4b[0]
        sdot    v19.4s, v9.16b, v1.4b[0]
        ins     v24.d[1], next
        sdot    v16.4s, v10.16b, v0.4b[1]
        ldr     d6, [ptr6], #8
        sdot    v27.4s, v9.16b, v5.4b[0]
        mov     taps_left, taps
        sdot    v18.4s, v10.16b, v1.4b[1]
        ld1     {v11.d}[1], [upper], by16
        ldr     d29, [first, #16]
        sdot    v22.4s, v10.16b, v3.4b[1]
        sdot    v24.4s, v8.16b, v4.4b[0]
        tbz     tile, #3, 10f
        st1     {v7.d}[1], [out], out_stride
10:     sdot    v26.4s, v10.16b, v5.4b[1]
        sdot    v17.4s, v9.16b, v0.4b[0]
        ins     v28.d[1], next
        ins     v31.d[1], left
        sdot    v23.4s, v11.16b, v3.4b[1]
        ins     v29.d[1], left
        sdot    v21.4s, v9.16b, v2.4b[0]
        sdot    v27.4s, v11.16b, v5.4b[1]
        ldr     d7, [ptr7], #8
        ins     v30.d[1], next
        sdot    v25.4s, v11.16b, v4.4b[1]
        ldr     left, [sp, #STEPS]
        sdot    v19.4s, v11.16b, v1.4b[1]
        sdot    v28.4s, v8.16b, v6.4b[0]
        ldr     d5, [ptr5], #8
        sdot    v30.4s, v8.16b, v7.4b[0]
        ldr     d8, [weights], #16
        sdot    v17.4s, v11.16b, v0.4b[1]
        ldr     d0, [ptr0], #8
        sdot    v31.4s, v9.16b, v7.4b[0]
        ldr     d3, [ptr3], #8
        sdot    v29.4s, v9.16b, v6.4b[0]
        ldr     d9, [weights], #16
        sdot    v21.4s, v11.16b, v2.4b[1]
        ld1     {v8.d}[1], [upper], by16
        sdot    v20.4s, v10.16b, v2.4b[1]
        sub     left, left, #1
        sdot    v30.4s, v10.16b, v7.4b[1]
        ldr     d1, [ptr1], #8
        ld1     {v9.d}[1], [upper], by16
        sdot    v24.4s, v10.16b, v4.4b[1]
        sdot    v29.4s, v11.16b, v6.4b[1]
        ldr     d2, [ptr2], #8
        sdot    v31.4s, v11.16b, v7.4b[1]
        ldr     d4, [ptr4], #8
        sdot    v28.4s, v10.16b, v6.4b[1]
.endm

        // And by itself.
.macro  finish_fused_rest
        ins     v16.d[1], next
        uzp1    v28.8h, v28.8h, v29.8h
        ldr     d31, [first, #16]
        sqxtn2  v11.16b, v24.8h
        ldr     d24, [first]
        sqxtn2  v7.16b, v28.8h
        ins     v25.d[1], left
        ldr     d28, [first]
        ins     v26.d[1], next
        ldr     d29, [first, #16]
        ins     v31.d[1], left
        ins     v24.d[1], next
        limits  v11, v7, 6
        st1     {v11.8b}, [out], out_stride
        mov     taps_left, taps
        st1     {v11.d}[1], [out], out_stride
        ins     v30.d[1], next
        st1     {v7.8b}, [out], out_stride
        ins     v29.d[1], left
        ldr     left, [sp, #STEPS]
        ins     v28.d[1], next
        tbz     tile, #3, 10f
        st1     {v7.d}[1], [out], out_stride
10:
.endm

        // The first and the second 4 of 8 bytes of a short tile: 4 pixels.
.macro  short_dots group, low, high, with0, with1, with2, with3, with4, with5, with6, with7
        dots    0, \group, 16, 17, \low, \high, "\with0", "\with1"
        dots    1, \group, 18, 19, \low, \high, "\with2", "\with3"
        dots    2, \group, 20, 21, \low, \high, "\with4", "\with5"
        dots    3, \group, 22, 23, \low, \high, "\with6", "\with7"
.endm

.macro  first_short_dots with
        short_dots 0, v8, v9, "ldr d10, [weights], #16", "ldr d11, [weights], #16", \
                "ldr d3, [ptr3], #8", "\with", "ld1 {v10.d}[1], [upper], by16", \
                "ld1 {v11.d}[1], [upper], by16"
.endm

        // Where a tap begins, its operands are waited for: there is one such tile at most. The last
        // pixel's are loaded beside the first products, as the branch stands beside the last ones.
.macro  sums_of_four
1:      ldp     ptr0, ptr1, [cursor]
        ldr     d8, [weights], #16
        ldr     d9, [weights], #16
        ldp     ptr2, ptr3, [cursor, #16]
        ldr     d2, [ptr2], #8
        ldr     d0, [ptr0], #8
        ldr     d1, [ptr1], #8
        add     cursor, cursor, tile, lsl #3
        ld1     {v8.d}[1], [upper], by16
        ld1     {v9.d}[1], [upper], by16
        subs    left, depth, #8
        b.ls    3f
2:      first_short_dots "subs left, left, #8"
        short_dots 1, v10, v11, "ldr d8, [weights], #16", "ldr d9, [weights], #16", \
                "ldr d0, [ptr0], #8", "ldr d1, [ptr1], #8", "ld1 {v8.d}[1], [upper], by16", \
                "ld1 {v9.d}[1], [upper], by16", "ldr d2, [ptr2], #8", "b.hi 2b"
        // The last 8 bytes, or 4.
3:      b.lo    4f
        first_short_dots
        short_dots 1, v10, v11
        b       5f
4:      short_dots 0, v8, v9, , , "ldr d3, [ptr3], #8"
5:      subs    taps_left, taps_left, #1
        b.ne    1b
.endm

        // The same of 2 pixels, which have not enough products for loads in halves to stand beside:
        // 128 bits are there 3 cycles earlier.
.macro  second_dots2 with0, with1, with2, with3, with4
        sdot    v16.4s, v10.16b, v0.4b[1]
        \with0
        sdot    v17.4s, v11.16b, v0.4b[1]
        \with1
        sdot    v18.4s, v10.16b, v1.4b[1]
        \with2
        \with3
        sdot    v19.4s, v11.16b, v1.4b[1]
        \with4
.endm

.macro  sums_of_two
1:      ldp     ptr0, ptr1, [cursor]
        ldr     q8, [weights], #16
        ldr     d0, [ptr0], #8
        ldr     q9, [weights], #16
        ldr     d1, [ptr1], #8
        add     cursor, cursor, tile, lsl #3
        subs    left, depth, #8
        b.lo    4f
2:      ldr     q10, [weights], #16
        sdot    v16.4s, v8.16b, v0.4b[0]
        ldr     q11, [weights], #16
        sdot    v17.4s, v9.16b, v0.4b[0]
        dots    1, 0, 18, 19, v8, v9
        b.eq    3f
        second_dots2 "ldr q8, [weights], #16", "subs left, left, #8", "ldr d0, [ptr0], #8", \
                "ldr q9, [weights], #16", "ldr d1, [ptr1], #8"
        b.hs    2b
        // The last 4 bytes, or none after 8.
4:      dots2   0, v8, v9
        b       5f
3:      second_dots2
5:      subs    taps_left, taps_left, #1
        b.ne    1b
.endm

.macro  sums_dotprod_a55
        ldp     q16, q17, [sp, #BIAS]
        add     upper, weights, #8
        mov     by16, #16
        // What 7 x 7 and 14 x 14 leave.
        cmp     pixels, #4
        b.hi    8f
9:      mov     v18.16b, v16.16b
        mov     v19.16b, v17.16b
        cmp     pixels, #2
        b.ls    7f
        fill    mov, v16.16b, v20.16b, v22.16b
        fill    mov, v17.16b, v21.16b, v23.16b
        sums_of_four
        b       6f
7:      sums_of_two
        b       6f
8:      ldr     ptr0, [cursor]
        orr     left, x28, x28, lsl #4          // where floats are stored
        ldr     ptr1, [cursor, #8]
        cmp     pixels, tile
        mov     v18.16b, v16.16b
        ccmp    channels, #8, #0, hs
        mov     v19.16b, v17.16b
        ldr     d8, [weights], #16
        mov     v20.16b, v16.16b
        ldr     d0, [ptr0], #8
        mov     v21.16b, v17.16b
        ldr     ptr2, [cursor, #16]
        mov     v22.16b, v16.16b
        ldr     d9, [weights], #16
        mov     v23.16b, v17.16b
        ldr     ptr3, [cursor, #24]
        mov     v24.16b, v16.16b
        ldr     d1, [ptr1], #8
        mov     v25.16b, v17.16b
        ldr     ptr4, [cursor, #32]
        mov     v26.16b, v16.16b
        ld1     {v8.d}[1], [upper], by16
        mov     v27.16b, v17.16b
        ldr     d2, [ptr2], #8
        mov     v28.16b, v16.16b
        ldr     ptr5, [cursor, #40]
        mov     v29.16b, v17.16b
        ldr     d3, [ptr3], #8
        mov     v30.16b, v16.16b
        ld1     {v9.d}[1], [upper], by16
        mov     v31.16b, v17.16b
        ldr     ptr6, [cursor, #48]
        cset    next, hs
        ldr     d4, [ptr4], #8
        and     next, next, left, lsr #9
        add     cursor, cursor, tile, lsl #3
        ldr     d5, [ptr5], #8
        and     zero_point, zero_point, #0x3fffffff
        ldur    ptr7, [cursor, #-8]
        ldr     left, [sp, #STEPS]
        cbnz    next, 22f

        // One tap: 8 bytes at a time but for its last 8 or 4.
1:      cbz     left, 21f
2:      first_dots "sub left, left, #1", FIRST_ROWS, IS_LAST_TILE, IS_LAST_TAP, ROWS_THEN, , , \
                IF_EIGHT
        second_dots , , IF_EIGHT, , , "cbnz left, 2b"

        // The last 8; the next pointers are loaded with them.
3:      tbnz    depth, #2, 4f
        first_dots "subs taps_left, taps_left, #1", "ldr ptr0, [next]", \
                "csel weights, panel, weights, eq", "add upper, weights, #8", \
                "ldr ptr1, [next, #8]", "ldr ptr2, [next, #16]", "ldr ptr3, [next, #24]", \
                "ldr ptr4, [next, #32]", "ldr ptr5, [next, #40]"
        second_dots "add cursor, next, tile, lsl #3", "ldr ptr6, [next, #48]", \
                "ldur ptr7, [cursor, #-8]", STEPS_OF_TAP
        cbnz    taps_left, 1b
14:     tbz     zero_point, #31, 12f
        finish_fused
        b.lo    25f
        finish_fused_beside
        b.hi    2b
        b       24f
25:     cmp     pixels, tile
        finish_fused_rest
        b.hi    1b
        // The panel's last tile follows, or the next panel.
15:     cbnz    pixels, 24f
        ldr     out, [args, #N8_OFF_IG_OUT]
        cmp     channels, #16
        ldr     next, [args, #N8_OFF_IG_MULTIPLIER]
        b.lo    20f
        ldr     addends, [args, #N8_OFF_IG_BIAS_F32]
        sub     channels, channels, #8
        ldr     pixels, [args, #N8_OFF_IG_PIXELS]
        add     offset, offset, #32
        tbnz    zero_point, #5, 19f
        add     out, out, offset, lsr #2
16:     add     next, next, offset
        ldp     q14, q15, [next]
        add     addends, addends, offset
        tbz     zero_point, #31, 18f
11:     ldp     q12, q13, [addends]
17:     cmp     pixels, tile
        b.hi    1b
24:     mul     next, taps, depth
        b.lo    13f
        cmp     channels, #16
        b.lo    1b
        add     first, first, #32
        add     panel, panel, next, lsl #3
        b       1b

        // Where floats are stored, and where values are small.
19:     add     out, out, offset
        b       16b
18:     tbnz    zero_point, #5, 11b
        ldr     q12, [sp, #ROUNDING]
        mov     v13.16b, v12.16b
        b       17b

        // No full tile.
13:     and     zero_point, zero_point, #0x3fffffff
        cmp     pixels, #4
        b.hi    1b
        mov     weights, panel
        add     upper, panel, #8
        sub     cursor, cursor, tile, lsl #3
        b       9b

12:     tbz     zero_point, #30, 5f
        finish
        b.hi    1b
        b       15b

        // A full tile that ends where the next begins: by (5d) if its channels have a start.
22:     ldr     first, [args, #N8_OFF_IG_BIAS]
        tst     zero_point, #6
        orr     zero_point, zero_point, #0x40000000
        cset    next, ne
        bfi     zero_point, w17, #11, #1
        tbz     zero_point, #10, 23f
        ldr     first, [args, #N8_OFF_IG_START]
        orr     zero_point, zero_point, #0x80000000
23:     ldr     next, [args, #N8_OFF_IG_MULTIPLIER]
        add     first, first, offset
        ldr     addends, [args, #N8_OFF_IG_BIAS_F32]
        b       16b

        // Nothing before them.
21:
        .irp    part, FIRST_ROWS, IS_LAST_TILE, IS_LAST_TAP, ROWS_THEN
        \part
        .endr
        b       3b

        // The last 4; each load of a row reads 8.
4:      dots    0, 0, 16, 17, v8, v9, "ldr d7, [ptr7], #8", "ldr d6, [ptr6], #8"
        dots    1, 0, 18, 19, v8, v9, "ldr ptr0, [next]", "subs taps_left, taps_left, #1"
        dots    2, 0, 20, 21, v8, v9, "csel weights, panel, weights, eq", "ldr ptr1, [next, #8]"
        dots    3, 0, 22, 23, v8, v9, "add upper, weights, #8", "ldr ptr2, [next, #16]"
        dots    4, 0, 24, 25, v8, v9, "ldr d10, [weights], #16", "ldr ptr3, [next, #24]"
        dots    5, 0, 26, 27, v8, v9, "ldr d11, [weights], #16", "ldr ptr4, [next, #32]"
        dots    6, 0, 28, 29, v8, v9, "ldr d0, [ptr0], #8", "ld1 {v10.d}[1], [upper], by16"
        dots    7, 0, 30, 31, v8, v9, "ld1 {v11.d}[1], [upper], by16", "ldr d1, [ptr1], #8"
        add     cursor, next, tile, lsl #3
        ldr     d2, [ptr2], #8
        ldr     ptr5, [next, #40]
        ldr     d3, [ptr3], #8
        ldr     d4, [ptr4], #8
        mov     v8.16b, v10.16b
        ldr     ptr6, [next, #48]
        mov     v9.16b, v11.16b
        ldr     d5, [ptr5], #8
        ldur    ptr7, [cursor, #-8]
        ldr     left, [sp, #STEPS]
        cbnz    taps_left, 1b
        b       14b

        // The pointers of the next tap were not there.
5:      sub     cursor, cursor, tile, lsl #3
6:
.endm

// Sums by products of 2 x 8 and 8 x 2 matrices ------------------------------------------------
//
//                       w v4      v5      v6      v7           8 bytes of 2 channels each
//          a0 v0        v16       v18     v17     v19
//          a1 v1        v20       v22     v21     v23          each accumulator holds the sums
//          a2 v2        v24       v26     v25     v27          of 2 pixels and 2 channels
//          a3 v3        v28       v30     v29     v31
//          8 bytes of 2 pixels each
//
// Bounds: smmla adds exact products to int32, which is proved by (12).

        // The products of two pixels, with all channels.
.macro  matrices pair, a, b, c, d
        smmla   v\a\().4s, v\pair\().16b, v4.16b
        smmla   v\b\().4s, v\pair\().16b, v5.16b
        smmla   v\c\().4s, v\pair\().16b, v6.16b
        smmla   v\d\().4s, v\pair\().16b, v7.16b
.endm

.macro  matrices8
        matrices 0, 16, 18, 17, 19
        matrices 1, 20, 22, 21, 23
        matrices 2, 24, 26, 25, 27
        matrices 3, 28, 30, 29, 31
.endm

        // From the accumulators of two pixels, a-d in the order of the channels, to rows of 4
        // channels with their bias, in v8 and v9.
.macro  unfold_add a, b, c, d
        couple  zip, v0.2d, v1.2d, v\a\().2d, v\b\().2d
        couple  zip, v2.2d, v3.2d, v\c\().2d, v\d\().2d
        add     v\a\().4s, v0.4s, v8.4s
        add     v\b\().4s, v1.4s, v8.4s
        add     v\c\().4s, v2.4s, v9.4s
        add     v\d\().4s, v3.4s, v9.4s
.endm

.macro  sums_i8mm
        fill    movi, #0, ALL_SUMS

        // One tap.
1:      ldp     ptr0, ptr1, [cursor]
        ldp     ptr2, ptr3, [cursor, #16]
        ldp     ptr4, ptr5, [cursor, #32]
        ldp     ptr6, ptr7, [cursor, #48]
        add     cursor, cursor, #64
        mov     left, depth

        // 8 bytes of it.
2:      ldr     d0, [ptr0], #8
        ldr     d1, [ptr2], #8
        ldr     d2, [ptr4], #8
        ldr     d3, [ptr6], #8
        ldp     q4, q5, [weights]
        ldp     q6, q7, [weights, #32]
        ld1     {v0.d}[1], [ptr1], #8
        ld1     {v1.d}[1], [ptr3], #8
        ld1     {v2.d}[1], [ptr5], #8
        ld1     {v3.d}[1], [ptr7], #8
        add     weights, weights, #64
        subs    left, left, #8
        matrices8
        b.ne    2b

        subs    taps_left, taps_left, #1
        b.ne    1b

        ldp     q8, q9, [sp, #BIAS]
        unfold_add 16, 18, 17, 19
        unfold_add 20, 22, 21, 23
        unfold_add 24, 26, 25, 27
        unfold_add 28, 30, 29, 31
.endm

// Packed pixels: taps follow each other without a gap in the rows as in the weights, so there is
// one loop. The sums stay in accumulators of 2 pixels and 2 channels.
.macro  sums_i8mm_packed
        // The first sums of two channels, for both pixels.
        ldp     q16, q18, [sp, #BIAS]
        ldp     q17, q19, [sp, #BIAS + 32]
        mul     left, taps, depth
        cmp     pixels, #4
        ldp     q20, q22, [sp, #BIAS]
        ldp     q21, q23, [sp, #BIAS + 32]
        ldp     q24, q26, [sp, #BIAS]
        ldp     q25, q27, [sp, #BIAS + 32]
        ldp     q28, q30, [sp, #BIAS]
        ldp     q29, q31, [sp, #BIAS + 32]
        b.ls    2f

        // 8 bytes.
1:      ldp     q0, q1, [cursor]
        ldp     q4, q5, [weights]
        ldp     q6, q7, [weights, #32]
        ldp     q2, q3, [cursor, #32]
        add     weights, weights, #64
        add     cursor, cursor, #64
        subs    left, left, #8
        matrices8
        b.ne    1b
        b       5f

        // The same of a tile with 4 pixels at most.
2:
        cmp     pixels, #2
        b.ls    4f
3:      ldp     q0, q1, [cursor], #64
        ldp     q4, q5, [weights]
        ldp     q6, q7, [weights, #32]
        add     weights, weights, #64
        subs    left, left, #8
        matrices 0, 16, 18, 17, 19
        matrices 1, 20, 22, 21, 23
        b.ne    3b
        b       5f

        // And with 2 at most, as 7 x 7 leave.
4:      ldr     q0, [cursor], #64
        ldp     q4, q5, [weights]
        ldp     q6, q7, [weights, #32]
        add     weights, weights, #64
        subs    left, left, #8
        matrices 0, 16, 18, 17, 19
        b.ne    4b
5:
.endm

        // To rows of 4 channels, in place: of two pixels, whose accumulators are a-d in the order
        // of the channels, and of the tile.
.macro  unfold  a, b, c, d
        mov     v0.16b, v\a\().16b
        mov     v1.16b, v\c\().16b
        zip1    v\a\().2d, v0.2d, v\b\().2d
        zip1    v\c\().2d, v1.2d, v\d\().2d
        zip2    v\b\().2d, v0.2d, v\b\().2d
        zip2    v\d\().2d, v1.2d, v\d\().2d
.endm

.macro  unfold_tile
        unfold  16, 18, 17, 19
        unfold  20, 22, 21, 23
        unfold  24, 26, 25, 27
        unfold  28, 30, 29, 31
.endm

// Sums by (23) --------------------------------------------------------------------------------
//
// From 4 tiles of two sides a and b: the sums of tile i are those of pixels 2 i and 2 i + 1 in the
// end.
//
//                       w v8 v9, v12 v13     v10 v11, v14 v15     2 x 4 bytes of 8 channels
//          a v0-v3      v16 v17, v20 ..                           8 bytes of 4 tiles
//          b v4-v7                           v18 v19, v22 ..
//
// Bounds: n8_igemm_8x8_halves; sdot and smmla add exact products modulo 2^32.
        registers x, 1, side_a, side_b, twice, thrice
taps_at .req x8

.macro  dots_of_sides group, a_low, a_high, b_low, b_high
        dots    0, \group, 16, 17, \a_low, \a_high
        dots    1, \group, 20, 21, \a_low, \a_high
        dots    2, \group, 24, 25, \a_low, \a_high
        dots    3, \group, 28, 29, \a_low, \a_high
        dots    4, \group, 18, 19, \b_low, \b_high
        dots    5, \group, 22, 23, \b_low, \b_high
        dots    6, \group, 26, 27, \b_low, \b_high
        dots    7, \group, 30, 31, \b_low, \b_high
.endm

        // A tap is done, and perhaps a half of them.
.macro  end_tap
        sub     taps_left, taps_left, #1
        cmp     taps_left, taps, lsr #1
        b.ne    3f
        ldr     q14, [sp, #START]
        call    halves
3:
.endm

.macro  sums_winograd_dotprod
        ldr     taps_at, [args, #N8_OFF_IG_ROWS]
        lsl     twice, depth, #1
        add     thrice, twice, depth
        ldp     q16, q17, [sp, #BIAS]
        fill    movi, #0, v18.4s, v19.4s, v22.4s, v23.4s, v26.4s, v27.4s, v30.4s, v31.4s
        fill    mov, v16.16b, v20.16b, v24.16b, v28.16b
        fill    mov, v17.16b, v21.16b, v25.16b, v29.16b

        // One tap.
1:      ldp     side_a, side_b, [taps_at], #16
        mov     left, depth
        add     side_a, side_a, cursor
        add     side_b, side_b, cursor

        // 8 bytes of it.
2:      ldp     q8, q9, [weights]
        ldr     d0, [side_a]
        ldr     d1, [side_a, depth]
        ldr     d2, [side_a, twice]
        ldr     d3, [side_a, thrice]
        ldp     q10, q11, [weights, #32]
        ldr     d4, [side_b]
        ldr     d5, [side_b, depth]
        ldr     d6, [side_b, twice]
        ldr     d7, [side_b, thrice]
        ldp     q12, q13, [weights, #64]
        ldp     q14, q15, [weights, #96]
        add     side_a, side_a, #8
        add     side_b, side_b, #8
        add     weights, weights, #128
        subs    left, left, #8
        dots_of_sides 0, v8, v9, v10, v11
        dots_of_sides 1, v12, v13, v14, v15
        b.ne    2b
        end_tap
        cbnz    taps_left, 1b
        add     cursor, cursor, depth, lsl #2
.endm

// For cores that issue in order: as above, an sdot is followed by a load of what is multiplied some
// 16 products later. When 8 bytes begin, v0-v6 and v8-v11 are there, and v7 is next. After the last
// tap, what is loaded are its first rows and the first weights of the panel, which nobody uses.
.macro  sums_winograd_dotprod_a55
        ldr     taps_at, [args, #N8_OFF_IG_ROWS]
        mov     by16, #16
        lsl     twice, depth, #1
        ldp     side_a, side_b, [taps_at], #16
        ldr     d8, [weights], #16
        movi    v18.4s, #0
        ldr     d9, [weights], #16
        movi    v19.4s, #0
        add     side_a, side_a, cursor
        add     side_b, side_b, cursor
        movi    v22.4s, #0
        ldp     q16, q17, [sp, #BIAS]
        movi    v23.4s, #0
        ldr     d10, [weights], #16
        add     thrice, twice, depth
        movi    v26.4s, #0
        ldr     d11, [weights], #16
        movi    v27.4s, #0
        add     upper, panel, #8
        movi    v30.4s, #0
        ld1     {v8.d}[1], [upper], by16
        movi    v31.4s, #0
        ld1     {v9.d}[1], [upper], by16
        mov     v20.16b, v16.16b
        ld1     {v10.d}[1], [upper], by16
        mov     v21.16b, v17.16b
        ld1     {v11.d}[1], [upper], by16
        mov     v24.16b, v16.16b
        ldr     d0, [side_a]
        mov     v25.16b, v17.16b
        ldr     d4, [side_b]
        mov     v28.16b, v16.16b
        ldr     d1, [side_a, depth]
        mov     v29.16b, v17.16b
        ldr     d5, [side_b, depth]
        ldr     d2, [side_a, twice]
        ldr     d6, [side_b, twice]
        ldr     d3, [side_a, thrice]
        mov     left, depth

        // 8 bytes of a tap.
1:      dots    0, 0, 16, 17, v8, v9, "ldr d7, [side_b, thrice]", "ldr d12, [weights], #16"
        dots    4, 0, 18, 19, v10, v11, "ldr d13, [weights], #16", "ldr d14, [weights], #16"
        dots    1, 0, 20, 21, v8, v9, "ldr d15, [weights], #16", "ld1 {v12.d}[1], [upper], by16"
        dots    5, 0, 22, 23, v10, v11, "ld1 {v13.d}[1], [upper], by16", \
                "ld1 {v14.d}[1], [upper], by16"
        dots    2, 0, 24, 25, v8, v9, "ld1 {v15.d}[1], [upper], by16", "subs left, left, #8"
        dots    6, 0, 26, 27, v10, v11, "add side_a, side_a, #8", "add side_b, side_b, #8"
        dots    3, 0, 28, 29, v8, v9
        dots    7, 0, 30, 31, v10, v11
        b.eq    4f
2:      dots    0, 1, 16, 17, v12, v13, "ldr d8, [weights], #16", "ldr d9, [weights], #16"
        dots    4, 1, 18, 19, v14, v15, "ldr d0, [side_a]", "ldr d10, [weights], #16"
        dots    1, 1, 20, 21, v12, v13, "ldr d4, [side_b]", "ldr d11, [weights], #16"
        dots    5, 1, 22, 23, v14, v15, "ldr d1, [side_a, depth]", "ld1 {v8.d}[1], [upper], by16"
        dots    2, 1, 24, 25, v12, v13, "ldr d5, [side_b, depth]", "ld1 {v9.d}[1], [upper], by16"
        dots    6, 1, 26, 27, v14, v15, "ldr d2, [side_a, twice]", "ld1 {v10.d}[1], [upper], by16"
        dots    3, 1, 28, 29, v12, v13, "ldr d6, [side_b, twice]", "ld1 {v11.d}[1], [upper], by16"
        dots    7, 1, 30, 31, v14, v15, "ldr d3, [side_a, thrice]"
        cbnz    left, 1b

        // A tap is done.
        sub     taps_left, taps_left, #1
        cmp     taps_left, taps, lsr #1
        mov     left, depth
        b.ne    3f
        ldr     q14, [sp, #START]
        call    halves
3:      cbnz    taps_left, 1b
        b       5f

        // Before the last products of a tap, the rows of the next; after the last tap, what there
        // is.
4:      cmp     taps_left, #1
        b.eq    6f
        ldp     side_a, side_b, [taps_at], #16
        add     side_a, side_a, cursor
        add     side_b, side_b, cursor
        b       2b
6:      mov     weights, panel
        add     upper, panel, #8
        sub     side_a, side_a, #8
        sub     side_b, side_b, #8
        b       2b

5:      add     cursor, cursor, depth, lsl #2
.endm

// By matrices, from tiles that lie in pairs:
//
//                       w v8   v9   v10  v11, v12  v13  v14  v15     8 bytes of 2 channels each
//          a v0         v16  v20  v17  v21
//          a v1         v24  v28  v25  v29                           each accumulator holds the
//          b v2                               v18  v22  v19  v23     sums of 2 tiles, 2 channels
//          b v3                               v26  v30  v27  v31
//          8 bytes of 2 tiles each
.macro  sums_winograd_i8mm
        ldr     taps_at, [args, #N8_OFF_IG_ROWS]
        add     upper, sp, #BIAS
        lsl     twice, depth, #1
        ld1r    {v16.2d}, [upper], #8
        ld1r    {v20.2d}, [upper], #8
        ld1r    {v17.2d}, [upper], #8
        ld1r    {v21.2d}, [upper]
        fill    movi, #0, v18.4s, v19.4s, v22.4s, v23.4s, v26.4s, v27.4s, v30.4s, v31.4s
        mov     v24.16b, v16.16b
        mov     v28.16b, v20.16b
        mov     v25.16b, v17.16b
        mov     v29.16b, v21.16b

        // One tap.
1:      ldp     side_a, side_b, [taps_at], #16
        mov     left, depth
        add     side_a, side_a, cursor
        add     side_b, side_b, cursor

        // 8 bytes of it.
2:      ldp     q8, q9, [weights]
        ldr     q1, [side_a, twice]
        ldr     q0, [side_a], #16
        ldp     q10, q11, [weights, #32]
        ldp     q12, q13, [weights, #64]
        ldr     q3, [side_b, twice]
        ldr     q2, [side_b], #16
        ldp     q14, q15, [weights, #96]
        add     weights, weights, #128
        subs    left, left, #8
        smmla   v16.4s, v0.16b, v8.16b
        smmla   v20.4s, v0.16b, v9.16b
        smmla   v24.4s, v1.16b, v8.16b
        smmla   v28.4s, v1.16b, v9.16b
        smmla   v17.4s, v0.16b, v10.16b
        smmla   v21.4s, v0.16b, v11.16b
        smmla   v25.4s, v1.16b, v10.16b
        smmla   v29.4s, v1.16b, v11.16b
        smmla   v18.4s, v2.16b, v12.16b
        smmla   v22.4s, v2.16b, v13.16b
        smmla   v26.4s, v3.16b, v12.16b
        smmla   v30.4s, v3.16b, v13.16b
        smmla   v19.4s, v2.16b, v14.16b
        smmla   v23.4s, v2.16b, v15.16b
        smmla   v27.4s, v3.16b, v14.16b
        smmla   v31.4s, v3.16b, v15.16b
        b.ne    2b
        end_tap
        cbnz    taps_left, 1b
        add     cursor, cursor, depth, lsl #2

        // To rows of 4 channels of the first of two tiles, and of the second.
        unfold  16, 20, 17, 21
        unfold  18, 22, 19, 23
        unfold  24, 28, 25, 29
        unfold  26, 30, 27, 31
.endm

// Epilogue ------------------------------------------------------------------------------------

// From sums to floats: fmul((float) acc'', multiplier[n]). Small sums, which hold a magic number,
// become floats by a subtraction. For their rounding v10 is loaded early.
.macro  scale
        ldr     ptr0, [args, #N8_OFF_IG_MULTIPLIER]
        ldp     q2, q10, [sp, #MAGIC]
        tbnz    zero_point, #8, 1f
        call    scale
        b       2f
1:      add     ptr0, ptr0, offset
        ldp     q0, q1, [ptr0]
        each    fsub, v2.4s, v16.4s, v17.4s, v18.4s, v19.4s
        each    fsub, v2.4s, LATE_SUMS
        each_half fmul, v0, v1
2:
.endm

// Adds the float bias (4).
.macro  add_bias
        ldr     ptr0, [args, #N8_OFF_IG_BIAS_F32]
        add     ptr0, ptr0, offset
        ldp     q0, q1, [ptr0]
        each_half fadd, v0, v1
.endm

// Adds the residual (6).
//
// Bounds: |residual - zero point| <= 255 fits int16, and is small: its float is exact as that of
//   a small sum.
//
// Four rows at a time, whose values are in v\a to v\d: no operation waits for the one before.
.macro  add_rows a, b, c, d, low0, high0, low1, high1, low2, high2, low3, high3
        ssubl   v\a\().8h, v\a\().8b, v15.8b
        ssubl   v\b\().8h, v\b\().8b, v15.8b
        ssubl   v\c\().8h, v\c\().8b, v15.8b
        ssubl   v\d\().8h, v\d\().8b, v15.8b
        saddw   v8.4s, v13.4s, v\a\().4h
        saddw   v9.4s, v13.4s, v\b\().4h
        saddw   v11.4s, v13.4s, v\c\().4h
        saddw   v12.4s, v13.4s, v\d\().4h
        saddw2  v\a\().4s, v13.4s, v\a\().8h
        saddw2  v\b\().4s, v13.4s, v\b\().8h
        saddw2  v\c\().4s, v13.4s, v\c\().8h
        saddw2  v\d\().4s, v13.4s, v\d\().8h
        each    fsub, v13.4s, v8.4s, v9.4s, v11.4s, v12.4s
        each    fsub, v13.4s, v\a\().4s, v\b\().4s, v\c\().4s, v\d\().4s
        each    fmul, v14.4s, v8.4s, v9.4s, v11.4s, v12.4s
        each    fmul, v14.4s, v\a\().4s, v\b\().4s, v\c\().4s, v\d\().4s
        fadd    v\low0\().4s, v\low0\().4s, v8.4s
        fadd    v\low1\().4s, v\low1\().4s, v9.4s
        fadd    v\low2\().4s, v\low2\().4s, v11.4s
        fadd    v\low3\().4s, v\low3\().4s, v12.4s
        fadd    v\high0\().4s, v\high0\().4s, v\a\().4s
        fadd    v\high1\().4s, v\high1\().4s, v\b\().4s
        fadd    v\high2\().4s, v\high2\().4s, v\c\().4s
        fadd    v\high3\().4s, v\high3\().4s, v\d\().4s
.endm

.macro  add_residual
        mov     ptr0, residual
        ldr     ptr3, [args, #N8_OFF_IG_RESIDUAL_STRIDE]
        add     ptr1, args, #N8_OFF_IG_RESIDUAL_ZERO_POINT
        add     ptr2, args, #N8_OFF_IG_RESIDUAL_SCALE
        ld1r    {v15.8b}, [ptr1]
        ld1r    {v14.4s}, [ptr2]
        ldr     q13, [sp, #MAGIC]
        cmp     pixels, #8
        b.lo    1f
        .irp    row, v0.8b, v1.8b, v2.8b, v3.8b, v4.8b, v5.8b, v6.8b, v7.8b
        ld1     {\row}, [ptr0], ptr3
        .endr
        b       2f
        // The residual of pixels that do not exist is read from the last one that does; the
        // bytes after the last channel are slack.
1:      .irp    row, 0, 1, 2, 3, 4, 5, 6
        ldr     d\row, [ptr0]
        cmp     pixels, #\row + 1
        add     ptr1, ptr0, ptr3
        csel    ptr0, ptr1, ptr0, hi
        .endr
        ldr     d7, [ptr0]
2:      add_rows 0, 1, 2, 3, 16, 17, 18, 19, 20, 21, 22, 23
        add_rows 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31
.endm

// From floats to 16 bits: leaky slope if there is one (5b), rounding and zero point (5).
//
// Bounds: n8_igemm_8x8_round and what follows it saturate, so nothing wraps and the clamp will see
//   the right side. Small values and the zero point together fit 16 bits.
.macro  round_tile
        tbnz    zero_point, #7, 1f
        call    round
        b       2f
1:      each    fadd, v10.4s, ALL_SUMS
        join_halves
        tbz     zero_point, #0, 3f
2:      ldr     q0, [sp, #ZERO_POINT]
        add_zero_point v0
3:
.endm

// 16 bits to int8: the bytes of pixels 0 and 1 lie in v16, of 2 and 3 in v20, then v24, v28.
.macro  narrow_tile
        tbz     zero_point, #1, 4f
        ldr     q11, [sp, #LO]
4:      narrow
.endm

// Scale and the same from accumulators of 2 pixels and 2 channels. The bytes of pixels 0 and 2 lie
// in v16, of 1 and 3 in v20, of 4 and 6 in v24, of 5 and 7 in v28: values are sorted by pixels as
// bytes, which takes a quarter of the work.

        // Four accumulators of the same two channels with a vector for them; all.
.macro  each4   op, a, b, c, d, by
        \op     v\a\().4s, v\a\().4s, v\by\().4s
        \op     v\b\().4s, v\b\().4s, v\by\().4s
        \op     v\c\().4s, v\c\().4s, v\by\().4s
        \op     v\d\().4s, v\d\().4s, v\by\().4s
.endm

.macro  each_pair op, channels01, channels23, channels45, channels67
        each4   \op, 16, 20, 24, 28, \channels01
        each4   \op, 18, 22, 26, 30, \channels23
        each4   \op, 17, 21, 25, 29, \channels45
        each4   \op, 19, 23, 27, 31, \channels67
.endm

        // Two accumulators as 16 bits.
.macro  saturate a, b
        sqxtn   v\a\().4h, v\a\().4s
        sqxtn2  v\a\().8h, v\b\().4s
.endm

        // The bytes of 4 pixels: of 0 and 2 in v\a, of 1 and 3 in v\b.
.macro  sort    a, c, b, d
        sqxtn   v0.8b, v\a\().8h
        sqxtn   v1.8b, v\b\().8h
        sqxtn2  v0.16b, v\c\().8h
        sqxtn2  v1.16b, v\d\().8h
        couple  uzp, v\a\().8h, v\b\().8h, v0.8h, v1.8h
.endm

        // (5d) of two pixels.
.macro  fuse_pairs a, b, c, d, a1, b1, c1, d1
        fmla    v\a1\().4s, v\a\().4s, v0.4s
        fmla    v\b1\().4s, v\b\().4s, v1.4s
        fmla    v\c1\().4s, v\c\().4s, v2.4s
        fmla    v\d1\().4s, v\d\().4s, v3.4s
        uzp1    v\a\().8h, v\a1\().8h, v\b1\().8h
        uzp1    v\c\().8h, v\c1\().8h, v\d1\().8h
.endm

.macro  scale_round8_folded
        ldr     ptr0, [args, #N8_OFF_IG_MULTIPLIER]
        add     ptr0, ptr0, offset
        ld1r    {v0.2d}, [ptr0], #8
        ld1r    {v1.2d}, [ptr0], #8
        ld1r    {v2.2d}, [ptr0], #8
        ld1r    {v3.2d}, [ptr0]
        ldp     q4, q5, [sp, #MAGIC]
        tbnz    zero_point, #10, 6f
        tbz     zero_point, #8, 1f

        // Channels 0-3 of pixels 0 and 1 to v16, 4-7 to v17; of 2 and 3 to v20 and v21, and so on.
        each_pair fsub, 4, 4, 4, 4
        tbz     zero_point, #7, 8f
7:      each_pair fmul, 0, 1, 2, 3
        each_pair fadd, 5, 5, 5, 5
        uzp1    v16.8h, v16.8h, v18.8h
        uzp1    v17.8h, v17.8h, v19.8h
        uzp1    v20.8h, v20.8h, v22.8h
        uzp1    v21.8h, v21.8h, v23.8h
        uzp1    v24.8h, v24.8h, v26.8h
        uzp1    v25.8h, v25.8h, v27.8h
        uzp1    v28.8h, v28.8h, v30.8h
        uzp1    v29.8h, v29.8h, v31.8h
        tbz     zero_point, #0, 4f
        b       3f

        // (5d)
6:      ldp     q4, q5, [sp, #ADDENDS]
        ldp     q6, q7, [sp, #ADDENDS + 32]
        ldp     q8, q9, [sp, #ADDENDS]
        ldp     q10, q11, [sp, #ADDENDS + 32]
        ldp     q12, q13, [sp, #ADDENDS]
        fuse_pairs 16, 18, 17, 19, 4, 5, 6, 7
        ldp     q14, q15, [sp, #ADDENDS + 32]
        ldp     q4, q5, [sp, #ADDENDS]
        fuse_pairs 20, 22, 21, 23, 8, 9, 10, 11
        ldp     q6, q7, [sp, #ADDENDS + 32]
        fuse_pairs 24, 26, 25, 27, 12, 13, 14, 15
        fuse_pairs 28, 30, 29, 31, 4, 5, 6, 7
        b       4f

        // The same of any others.
1:      in_place scvtf, ALL_SUMS
        tbnz    zero_point, #7, 7b
8:      ldr     ptr0, [args, #N8_OFF_IG_SLOPE]
        each_pair fmul, 0, 1, 2, 3
        cbz     ptr0, 2f
        add     ptr0, ptr0, offset
        ld1r    {v0.2d}, [ptr0], #8
        ld1r    {v1.2d}, [ptr0], #8
        ld1r    {v2.2d}, [ptr0], #8
        ld1r    {v3.2d}, [ptr0]
        leaky   v0, v4, v5, v16, v20, v24, v28
        leaky   v1, v4, v5, v18, v22, v26, v30
        leaky   v2, v4, v5, v17, v21, v25, v29
        leaky   v3, v4, v5, v19, v23, v27, v31
2:      in_place fcvtns, ALL_SUMS
        saturate 16, 18
        saturate 17, 19
        saturate 20, 22
        saturate 21, 23
        saturate 24, 26
        saturate 25, 27
        saturate 28, 30
        saturate 29, 31

3:      ldr     q0, [sp, #ZERO_POINT]
        each    sqadd, v0.8h, v16.8h, v17.8h, v20.8h, v21.8h, v24.8h, v25.8h, v28.8h, v29.8h
4:      tbz     zero_point, #1, 5f
        ldr     q11, [sp, #LO]
5:      sort    16, 17, 20, 21
        sort    24, 25, 28, 29
.endm

// Stores of exactly the pixels and channels there are -----------------------------------------

// Clamps (5) and stores bytes, in pairs of pixels; `crossed`: as scale_round8_folded leaves them.
// The limits are often those of saturation, as after ReLU; otherwise lo is in v11.
.macro  store8  crossed=0
        tbz     zero_point, #1, 1f
        each    smax, v11.16b, v16.16b, v20.16b, v24.16b, v28.16b
1:      tbz     zero_point, #2, 1f
        ldr     q12, [sp, #HI]
        each    smin, v12.16b, v16.16b, v20.16b, v24.16b, v28.16b
1:
        // A full tile.
        mov     ptr0, out
        cmp     pixels, tile
        add     ptr1, out, out_stride
        ccmp    channels, #8, #0, hs
        lsl     ptr2, out_stride, #1
        b.lo    2f
    .if \crossed
        st1     {v16.8b}, [ptr0], ptr2
        st1     {v20.8b}, [ptr1], ptr2
        st1     {v16.d}[1], [ptr0], ptr2
        st1     {v20.d}[1], [ptr1], ptr2
        st1     {v24.8b}, [ptr0], ptr2
        st1     {v28.8b}, [ptr1], ptr2
        st1     {v24.d}[1], [ptr0]
        st1     {v28.d}[1], [ptr1]
    .else
        st1     {v16.8b}, [ptr0], ptr2
        st1     {v16.d}[1], [ptr1], ptr2
        st1     {v20.8b}, [ptr0], ptr2
        st1     {v20.d}[1], [ptr1], ptr2
        st1     {v24.8b}, [ptr0], ptr2
        st1     {v24.d}[1], [ptr1], ptr2
        st1     {v28.8b}, [ptr0], ptr2
        tbz     tile, #3, 9f
        st1     {v28.d}[1], [ptr1], ptr2
    .endif
        b       9f

2:
    .if \crossed
        zip2    v17.2d, v16.2d, v20.2d
        zip1    v16.2d, v16.2d, v20.2d
        zip2    v25.2d, v24.2d, v28.2d
        zip1    v24.2d, v24.2d, v28.2d
        mov     v20.16b, v17.16b
        mov     v28.16b, v25.16b
    .endif
        call    edge
9:
.endm

// Results of 32 bits.
.macro  store32
        // A full tile.
        mov     ptr0, out
        cmp     pixels, #8
        ccmp    channels, #8, #0, hs
        b.lo    2f
        st1     {v16.4s, v17.4s}, [ptr0], out_stride
        st1     {v18.4s, v19.4s}, [ptr0], out_stride
        st1     {v20.4s, v21.4s}, [ptr0], out_stride
        st1     {v22.4s, v23.4s}, [ptr0], out_stride
        st1     {v24.4s, v25.4s}, [ptr0], out_stride
        st1     {v26.4s, v27.4s}, [ptr0], out_stride
        st1     {v28.4s, v29.4s}, [ptr0], out_stride
        st1     {v30.4s, v31.4s}, [ptr0], out_stride
        b       9f

        // The edge: pixel by pixel, the others moving up after each other.
2:      mov     left, #8
        cmp     pixels, left
        csel    left, pixels, left, lo
3:      cmp     channels, #8
        b.lo    4f
        st1     {v16.4s, v17.4s}, [ptr0]
        b       7f
4:      mov     ptr1, ptr0
        tbz     channels, #2, 5f
        st1     {v16.4s}, [ptr1], #16
        mov     v16.16b, v17.16b
5:      tbz     channels, #1, 6f
        st1     {v16.2s}, [ptr1], #8
        ext     v16.16b, v16.16b, v16.16b, #8
6:      tbz     channels, #0, 7f
        st1     {v16.s}[0], [ptr1]
7:      mov     v16.16b, v18.16b
        mov     v17.16b, v19.16b
        mov     v18.16b, v20.16b
        mov     v19.16b, v21.16b
        mov     v20.16b, v22.16b
        mov     v21.16b, v23.16b
        mov     v22.16b, v24.16b
        mov     v23.16b, v25.16b
        mov     v24.16b, v26.16b
        mov     v25.16b, v27.16b
        mov     v26.16b, v28.16b
        mov     v27.16b, v29.16b
        mov     v28.16b, v30.16b
        mov     v29.16b, v31.16b
        add     ptr0, ptr0, out_stride
        subs    left, left, #1
        b.ne    3b
9:
.endm

// The kernel ----------------------------------------------------------------------------------
//
// Kernels that differ in what they store only share their code, which is in the one that stores int8
// and adds nothing: the others say what they are by `kind` and go on there. Bit 3 is set in all of
// these, bit 4 where 32 bits are stored, bit 5 for floats.
#define ADD     0x08    // adds a residual
#define WORDS   0x18    // stores the sums
#define FLOATS  0x38
#define ORDERED 0x40    // for cores that issue in order
#define SEVEN   0x80    // for tiles of 7 pixels

// What all of them begin with: zero_point, tile, and the vectors on the stack but those of a panel.
// Changes v0-v5 and x1-x8.
func    n8_igemm_8x8_begin
        ldp     zero_point, w1, [args, #N8_OFF_IG_ZERO_POINT]   // and lo
        ldp     w2, w7, [args, #N8_OFF_IG_HI]                    // and small
        mov     tile, #8
        sub     tile, tile, x6, lsr #7          // SEVEN
        mov     w3, #0x4b400000
        tst     kind, #0x10
        csel    w7, w7, wzr, eq
        lsr     w8, w7, #1              // N8_SMALL_SUMS
        and     w7, w7, #N8_SMALL_RESULTS
        tst     kind, #ORDERED
        csel    w8, w8, wzr, eq
        tst     zero_point, #1
        csel    w4, zero_point, wzr, eq
        mul     w5, w8, w3
        add     w4, w4, w3
        dup     v0.4s, w3
        dup     v1.4s, w4
        dup     v2.8h, zero_point
        dup     v3.16b, w1
        dup     v4.16b, w2
        dup     v5.4s, w5
        and     zero_point, zero_point, #1
        orr     zero_point, zero_point, kind
        cmn     w1, #128
        cset    w1, ne
        cmp     w2, #127
        cset    w2, ne
        bfi     zero_point, w1, #1, #1
        bfi     zero_point, w2, #2, #1
        and     w2, kind, #0x3f
        bfi     zero_point, w7, #7, #1
        bfi     zero_point, w8, #8, #1
        cmp     w7, #0
        ccmp    w2, #0, #0, ne
        cset    w1, eq
        bfi     zero_point, w1, #9, #1
        stp     q0, q1, [sp, #MAGIC]
        stp     q2, q3, [sp, #ZERO_POINT]
        stp     q4, q5, [sp, #HI]
        ret
endfunc n8_igemm_8x8_begin

// name, march: of the function. rows: plain, packed or winograd. sums: the macro above for both;
// ordered: that for cores that issue in order.
.macro  igemm   name, march, rows, sums, ordered
func    n8_igemm_s8_s8_\name, \march
        mov     kind, #0
.Lkind_\name:
        enter   FRAME, SAVED
        ldr     out_stride, [args, #N8_OFF_IG_OUT_STRIDE]
        ldr     panel, [args, #N8_OFF_IG_WEIGHTS]
        ldr     channels, [args, #N8_OFF_IG_CHANNELS]
        ldp     taps, depth, [args, #N8_OFF_IG_TAPS]
        mov     offset, #0
        call    begin
    .ifnb \ordered
        sub     left, depth, #1
        lsr     left, left, #3
        str     left, [sp, #STEPS]
    .endif

        // One tile of channels: its weights, `panel`, serve all pixels.
.Lchannels\@:
        ldr     ptr0, [args, #N8_OFF_IG_BIAS]
        ldr     ptr1, [args, #N8_OFF_IG_START]
        ldr     q4, [sp, #START]
        and     zero_point, zero_point, #0xfffffbff
        cbz     ptr1, .Lbegin\@
        ldr     w3, [ptr1, offset]
        cbz     w3, .Lbegin\@
        mov     ptr0, ptr1
        movi    v4.4s, #0
        orr     zero_point, zero_point, #0x400
.Lbegin\@:
        add     ptr0, ptr0, offset
    .ifc \rows, packed
        ld1r    {v0.2d}, [ptr0], #8
        ld1r    {v1.2d}, [ptr0], #8
        ld1r    {v2.2d}, [ptr0], #8
        ld1r    {v3.2d}, [ptr0]
        add     v2.4s, v2.4s, v4.4s
        add     v3.4s, v3.4s, v4.4s
        stp     q2, q3, [sp, #BIAS + 32]
        ldr     ptr1, [args, #N8_OFF_IG_BIAS_F32]
        add     ptr1, ptr1, offset
        ld1r    {v2.2d}, [ptr1], #8
        ld1r    {v3.2d}, [ptr1], #8
        ld1r    {v5.2d}, [ptr1], #8
        ld1r    {v6.2d}, [ptr1]
        stp     q2, q3, [sp, #ADDENDS]
        stp     q5, q6, [sp, #ADDENDS + 32]
    .else
        ldp     q0, q1, [ptr0]
    .endif
        add     v0.4s, v0.4s, v4.4s
        add     v1.4s, v1.4s, v4.4s
        stp     q0, q1, [sp, #BIAS]
        ldr     out, [args, #N8_OFF_IG_OUT]
        ldr     residual, [args, #N8_OFF_IG_RESIDUAL]
        lsr     ptr0, offset, #2
        tst     zero_point, #0x10
        add     residual, residual, ptr0
        csel    ptr0, ptr0, offset, eq
        add     out, out, ptr0
    .ifc \rows, winograd
        mov     cursor, #0
    .else
        ldr     cursor, [args, #N8_OFF_IG_ROWS]
    .endif
    .ifc \rows, packed
        ldr     cursor, [cursor]
    .endif
        ldr     pixels, [args, #N8_OFF_IG_PIXELS]

        // One tile of pixels.
.Lpixels\@:
        mov     weights, panel
        mov     taps_left, taps
    .ifnb \ordered
        tbz     zero_point, #6, .Lsums\@
        \ordered
        b       .Lsummed\@
    .endif
.Lsums\@:
        \sums
.Lsummed\@:
        tbnz    zero_point, #3, .Lother\@
    .ifc \rows, packed
        scale_round8_folded
        store8  crossed=1
    .else
        tbnz    zero_point, #10, .Lfused\@
        scale
.Lround\@:
        round_tile
.Lnarrow\@:
        narrow_tile
        store8
    .endif
.Lnext\@:
        ldr     ptr0, [args, #N8_OFF_IG_RESIDUAL_STRIDE]
        madd    out, out_stride, tile, out
        subs    pixels, pixels, tile
        madd    residual, ptr0, tile, residual
        b.hi    .Lpixels\@

20:     mul     left, taps, depth
    .ifc \rows, winograd
        lsl     left, left, #1
    .endif
        add     panel, panel, left, lsl #3
        add     offset, offset, #32
        subs    channels, channels, #8
        b.hi    .Lchannels\@
        .cfi_remember_state
        leave   FRAME, SAVED
        ret
        .cfi_restore_state

        // A tile of another kind.
.Lother\@:
    .ifc \rows, packed
        unfold_tile
    .endif
    .ifnc \rows, winograd
        tbnz    zero_point, #4, .Lwords\@
    .endif
        scale
        add_residual
    .ifc \rows, packed
        round_tile
        narrow_tile
        store8
        b       .Lnext\@
    .else
        b       .Lround\@
.Lfused\@:
        call    fused
        b       .Lnarrow\@
    .endif
    .ifnc \rows, winograd
.Lwords\@:
        tbz     zero_point, #5, .Lwhole\@
        call    scale
        add_bias
.Lwhole\@:
        store32
        b       .Lnext\@
    .endif
endfunc n8_igemm_s8_s8_\name
.endm

.macro  other   slot, name, march, kind, suffix
func    n8_igemm_\slot\()_\name\suffix, \march
        mov     kind, #\kind
        b       .Lkind_\name
endfunc n8_igemm_\slot\()_\name\suffix
.endm

igemm   dotprod, DOTPROD, plain, sums_dotprod, sums_dotprod_a55
other   s8_s8_add, dotprod, DOTPROD, ADD
other   s8_s32, dotprod, DOTPROD, WORDS
other   s8_f32, dotprod, DOTPROD, FLOATS
other   s8_s8, dotprod, DOTPROD, ORDERED, _a55
other   s8_s8_add, dotprod, DOTPROD, ORDERED | ADD, _a55
other   s8_s8, dotprod, DOTPROD, ORDERED | SEVEN, _a55_7x8
other   s8_s8_add, dotprod, DOTPROD, ORDERED | SEVEN | ADD, _a55_7x8
other   s8_s32, dotprod, DOTPROD, ORDERED | WORDS, _a55
other   s8_f32, dotprod, DOTPROD, ORDERED | FLOATS, _a55
igemm   dotprod_winograd, DOTPROD, winograd, sums_winograd_dotprod, sums_winograd_dotprod_a55
other   s8_s8_add, dotprod_winograd, DOTPROD, ADD
other   s8_s8, dotprod_winograd, DOTPROD, ORDERED, _a55
other   s8_s8_add, dotprod_winograd, DOTPROD, ORDERED | ADD, _a55

igemm   i8mm, I8MM, plain, sums_i8mm
other   s8_s8_add, i8mm, I8MM, ADD
other   s8_s32, i8mm, I8MM, WORDS
other   s8_f32, i8mm, I8MM, FLOATS
igemm   i8mm_packed, I8MM, packed, sums_i8mm_packed
other   s8_s8_add, i8mm_packed, I8MM, ADD
other   s8_s32, i8mm_packed, I8MM, WORDS
other   s8_f32, i8mm_packed, I8MM, FLOATS
igemm   i8mm_winograd, I8MM, winograd, sums_winograd_i8mm
other   s8_s8_add, i8mm_winograd, I8MM, ADD
