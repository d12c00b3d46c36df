// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM in tiles of 4 pixels x 8 channels: igemm_s8_s32, igemm_s8_f32, igemm_s8_s8 and
// igemm_s8_s8_add of runtime/kernel.h, which has the equations and the layout of all arrays.
//
//   void n8_igemm_s8_..._neon(const struct n8_igemm_args *args);
//
//   acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[t][p][k] * w[n][t][k]       (3)(12)
//
//                       w d12  d13     2 bytes of 8 channels; d14-d15: the next 2
//                  a d0   q8   q9      2 bytes of a pixel, in all lanes; d1: the next 2
//
// A load of a pixel's bytes puts each pair of them into all four lanes of a vector, to be
// multiplied by the pairs of four channels. vpadal adds the two products of a pair, so each
// accumulator has its lane from the first product on, and each load of weights serves four pixels.
// Groups are 8 bytes deep. A mark says of which a lane takes all four products before vpadal; of
// others it takes two. `deep` has the marks of a tap in words, from the highest bit down, each with
// a 1 after its last: so a shift to the left tells the kind of the next group by the carry, and the
// end of the word by zero.
//
// Cores that issue in order let a product wait for the one that it is added to, unless they forward
// it, and let vpadal wait for both. So the two halves of the channels take turns, and products of
// two to a lane, in two pairs of registers, are added only after those of the next pixel. The last
// pixel's, in q2 and q3, are added in the group that follows, of either kind, which finds the first
// half of its weights in d12-d15. A last pixel alone takes two products to a lane in every group.
//
// Where values are small (kernel.h), accumulators begin with the bias plus the bits of the float
// C = 1.5 * 2^23. Adding acc'' to these bits gives those of the float C + acc'', from which
// subtracting C leaves acc'', exactly. And the low 16 bits of C + v are rne(v), see asm.h; with an
// even zero point added to C, rne(v) + zero_point. See numerics.md, Compilers. Tiles of other
// values, or of fewer pixels or channels, take the general path.
//
// Bounds: |a| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products that
//   share an int16 lane reach at most 32640; vpadal empties it before a third, but where a mark says
//   that four fit. int32 is proved by (12). Small values and the zero point together fit 16 bits. |residual - zero
//   point| <= 255 fits int16, and its float is as exact as that of a small accumulator.
// Registers: the accumulators of pixel p are in q8 + 2 * p, channels 0-3, and q9 + 2 * p, channels
//   4-7. Between the parts of a kernel, q0-q7, ptr0-ptr3, weights, left and taps_left are free.
// Stack: 448 bytes: the places below and callee-saved registers.
#include "asm.h"

        registers r, 0, constants, ptr0, ptr1, ptr2, ptr3, left, weights, taps_left
        // constants: at sp + CONSTANTS
        registers r, 8, cursor, pixels, out, out_stride, marks
        // cursor: the pointers of the next tap; pixels: left, over 4 where tiles follow
        // out: this tile's; left: words of marks of the tap
next_marks .req lr

// Places on the stack.
#define START           0       // 128 bytes: what the accumulators begin with
#define PANEL           128     // words from here on: weights of these 8 channels, and
#define TAPS            132     // taps; loaded as a pair
#define MARKS           136     // of this panel
#define USUAL           140     // fewer pixels take the general path: 4, or ~0 where all tiles do
#define CHANNELS        144     // left, over 8 where panels follow
#define OFFSET          148     // 4 * the first channel
#define OUT_BASE        152
#define RESIDUAL_BASE   156
#define RESIDUAL        160     // this tile's
#define RESIDUAL_STRIDE 164
#define PANEL_BYTES     168
#define ARGS            172
#define ODD             176     // 1: the zero point is odd, and added after rounding; or 0
#define WORDS           180     // of marks of a tap
#define CONSTANTS       184     // 160 bytes
#define PANEL_MARKS     344     // bytes
#define FRAME           348

// Places after `constants`, 16 bytes each unless it says otherwise.
#define SCALE           0       // 32 bytes
#define BIAS_F32        32      // 32 bytes, of igemm_s8_f32, which has none of the following
#define MAGIC           32      // C
#define ROUNDING        48      // C, and the zero point if it is even
#define LO              64
#define HI              80
#define RESIDUAL_SCALE  96
#define RESIDUAL_ZERO   112
#define ZERO_POINT      128
#define START_BITS      144     // the bits of C where values are small, else 0

#define WORD_MARKS      31

// An operation on all accumulators with one operand, or with one for each half of the channels.
.macro  on_tile operation, operand
        each    \operation, \operand, q8, q9, q10, q11, q12, q13, q14, q15
.endm

.macro  by_channel operation, low, high
        each    \operation, \low, q8, q10, q12, q14
        each    \operation, \high, q9, q11, q13, q15
.endm

// Entry.
.macro  begin   to
        push_all FRAME
        ldr     r1, [r0, #N8_OFF_IG_DEPTH]
        ldr     r2, [r0, #N8_OFF_IG_TAPS]
        ldr     r3, [r0, #N8_OFF_IG_WEIGHTS]
        ldr     r4, [r0, #N8_OFF_IG_DEEP]
        str     r0, [sp, #ARGS]
        mul     r5, r1, r2
        lsl     r5, r5, #3
        str     r5, [sp, #PANEL_BYTES]
        str     r2, [sp, #TAPS]
        str     r3, [sp, #PANEL]
        str     r4, [sp, #MARKS]
        // By 31 is times 2^32 / 31, rounded up, the high word.
        movw    r3, #0x1085
        movt    r3, #0x0842
        lsr     r1, r1, #3
        add     r1, r1, #WORD_MARKS - 1
        umull   r4, r5, r1, r3
        mul     r2, r2, r5
        lsl     r2, r2, #2
        str     r5, [sp, #WORDS]
        str     r2, [sp, #PANEL_MARKS]

        ldr     r1, [r0, #N8_OFF_IG_CHANNELS]
        ldr     r2, [r0, #N8_OFF_IG_OUT]
        ldr     r3, [r0, #N8_OFF_IG_RESIDUAL]
        ldr     r4, [r0, #N8_OFF_IG_RESIDUAL_STRIDE]
        ldr     out_stride, [r0, #N8_OFF_IG_OUT_STRIDE]
        str     r1, [sp, #CHANNELS]
        str     r2, [sp, #OUT_BASE]
        str     r3, [sp, #RESIDUAL_BASE]
        str     r4, [sp, #RESIDUAL_STRIDE]
        mov     r5, #0
        str     r5, [sp, #OFFSET]
        mov     r6, #4
    .ifc \to, s8
        ldr     r1, [r0, #N8_OFF_IG_ZERO_POINT]
        ldr     r2, [r0, #N8_OFF_IG_SMALL]
        mov     r3, #0x4b000000
        orr     r3, r3, #0x400000
        ands    r2, r2, r2, lsr #1      // both
        mvneq   r6, #0
        ands    r5, r1, #1
        addeq   r4, r3, r1
        movne   r4, r3
        str     r5, [sp, #ODD]
        vdup.32 q0, r3
        vdup.32 q1, r4
        mul     r4, r3, r2
        vdup.16 q8, r1
        vdup.32 q9, r4
        ldr     r1, [r0, #N8_OFF_IG_LO]
        ldr     r2, [r0, #N8_OFF_IG_HI]
        ldr     r3, [r0, #N8_OFF_IG_RESIDUAL_SCALE]
        ldr     r4, [r0, #N8_OFF_IG_RESIDUAL_ZERO_POINT]
        vdup.8  q2, r1
        vdup.8  q3, r2
        vdup.32 q4, r3
        vdup.8  q5, r4
        add     r1, sp, #CONSTANTS + MAGIC
        vstmia  r1!, {q0-q5}
        vstmia  r1, {q8-q9}
    .endif
        str     r6, [sp, #USUAL]
.endm

// What the pixels of 8 channels share, and the first tile of them.
.macro  begin_channels to
        ldr     r4, [sp, #ARGS]
        ldr     r5, [sp, #OFFSET]
        ldr     r1, [r4, #N8_OFF_IG_BIAS]
        add     r1, r1, r5
        vldmia  r1, {q0-q1}
    .ifc \to, s8
        add     r1, sp, #CONSTANTS + START_BITS
        vldmia  r1, {q2}
        vadd.i32 q0, q0, q2
        vadd.i32 q1, q1, q2
    .endif
        mov     r1, sp
        vmov    q2, q0
        vmov    q3, q1
        vstmia  r1!, {q0-q3}
        vstmia  r1, {q0-q3}
        add     constants, sp, #CONSTANTS
    .ifnc \to, s32
        ldr     r1, [r4, #N8_OFF_IG_MULTIPLIER]
        add     r1, r1, r5
        vldmia  r1, {q0-q1}
        vstmia  constants, {q0-q1}
    .endif
    .ifc \to, f32
        ldr     r1, [r4, #N8_OFF_IG_BIAS_F32]
        add     r1, r1, r5
        add     r2, constants, #BIAS_F32
        vldmia  r1, {q0-q1}
        vstmia  r2, {q0-q1}
    .endif
        ldr     r1, [sp, #CHANNELS]
        cmp     r1, #8
        mvnlo   r2, #0
        strlo   r2, [sp, #USUAL]
        ldr     cursor, [r4, #N8_OFF_IG_ROWS]
        ldr     pixels, [r4, #N8_OFF_IG_PIXELS]
        ldr     out, [sp, #OUT_BASE]
        ldr     r1, [sp, #RESIDUAL_BASE]
        str     r1, [sp, #RESIDUAL]
.endm

// The sums of products of a pixel to its accumulators.
.macro  add_products acc0, acc1, sum0, sum1
        vpadal.s16 \acc0, \sum0
        vpadal.s16 \acc1, \sum1
.endm

// Two products to a lane: 4 bytes of a pixel, while those of the next one are loaded.
.macro  multiply2 low, high, sum0, sum1, next_low, next_high, next
        vmull.s8 \sum0, \low, d12
        vmull.s8 \sum1, \low, d13
    .ifnb \next
        vld2.16 {\next_low[], \next_high[]}, [\next]!
    .endif
        vmlal.s8 \sum0, \high, d14
        vmlal.s8 \sum1, \high, d15
.endm

// The first three pixels of half a group, and the products of the last one before.
.macro  half_group2
        multiply2 d0, d1, q4, q5, d2, d3, ptr1
        add_products q14, q15, q2, q3
        multiply2 d2, d3, q2, q3, d0, d1, ptr2
        add_products q8, q9, q4, q5
        multiply2 d0, d1, q4, q5, d2, d3, ptr3
        add_products q10, q11, q2, q3
.endm

// Four products to a lane: 8 bytes of a pixel in d0-d3, by those of the channels in d12-d15 and
// d8-d11. The last pixel's are followed by the next group's.
.macro  multiply4 next
        vmull.s8 q2, d0, d12
        vmull.s8 q3, d0, d13
        vmlal.s8 q2, d1, d14
        vmlal.s8 q3, d1, d15
    .ifb \next
        vld1.8  {d12-d15}, [weights]!
    .endif
        vmlal.s8 q2, d2, d8
        vmlal.s8 q3, d2, d9
        vmlal.s8 q2, d3, d10
        vmlal.s8 q3, d3, d11
    .ifnb \next
        vld4.16 {d0[], d1[], d2[], d3[]}, [\next]!
    .endif
.endm

// The accumulators of a tile.
.macro  accumulate
        ldrd    weights, taps_left, [sp, #PANEL]
        ldr     next_marks, [sp, #MARKS]
        vldmia  sp, {d16-d31}
        fill    vmov.i32, #0, q2, q3
        vld1.8  {d12-d15}, [weights]!

        // One tap, and one word of its marks.
1:      ldmia   cursor!, {ptr0, ptr1, ptr2, ptr3}
        ldr     left, [sp, #WORDS]
2:      ldr     marks, [next_marks], #4
        lsls    marks, marks, #1
        bcs     5f

        // Groups of two products to a lane.
7:      vld2.16 {d0[], d1[]}, [ptr0]!
        b       4f
3:      vld2.16 {d0[], d1[]}, [ptr0]!
        add_products q12, q13, q4, q5
4:      half_group2
        multiply2 d2, d3, q2, q3, d0, d1, ptr0
        vld1.8  {d12-d15}, [weights]!
        add_products q12, q13, q4, q5
        half_group2
        lsls    marks, marks, #1
        multiply2 d2, d3, q2, q3
        vld1.8  {d12-d15}, [weights]!
        bcc     3b
        add_products q12, q13, q4, q5
        beq     6f

        // Groups of four.
5:      vld4.16 {d0[], d1[], d2[], d3[]}, [ptr0]!
        vld1.8  {d8-d11}, [weights]!
        add_products q14, q15, q2, q3
        multiply4 ptr1
        add_products q8, q9, q2, q3
        multiply4 ptr2
        add_products q10, q11, q2, q3
        multiply4 ptr3
        add_products q12, q13, q2, q3
        lsls    marks, marks, #1
        multiply4
        bhi     5b
        bcc     7b
6:      subs    left, left, #1
        bne     2b
        subs    taps_left, taps_left, #1
        bne     1b
        add_products q14, q15, q2, q3
.endm

// To floats: fmul((float) acc'', multiplier[n]). Changes q0 and q1.
.macro  scale_tile
        vldmia  constants, {q0-q1}
        to_float q8, q9, q10, q11, q12, q13, q14, q15
        by_channel vmul.f32, q0, q1
.endm

// A tile of small values to int8, in d16-d19.
.macro  requantize residual
    .if \residual
        vldmia  constants, {q0-q2}
    .else
        vldmia  constants, {q0-q5}
    .endif
        on_tile vsub.f32, q2
        by_channel vmul.f32, q0, q1
    .if \residual
        ldr     ptr0, [sp, #RESIDUAL]
        ldr     ptr1, [sp, #RESIDUAL_STRIDE]
        vld1.8  {d12}, [ptr0], ptr1
        vld1.8  {d13}, [ptr0], ptr1
        vld1.8  {d14}, [ptr0], ptr1
        vld1.8  {d15}, [ptr0], ptr1
        str     ptr0, [sp, #RESIDUAL]
        bl      n8_igemm_4x8_add
        add     ptr0, constants, #ROUNDING
        vldmia  ptr0, {q3-q5}
    .endif
        on_tile vadd.f32, q3
        vuzp.16 q8, q9
        vuzp.16 q10, q11
        vuzp.16 q12, q13
        vuzp.16 q14, q15
        ldr     ptr0, [sp, #ODD]
        cmp     ptr0, #0
        beq     1f
        add     ptr0, constants, #ZERO_POINT
        vldmia  ptr0, {q0}
        each    vadd.i16, q0, q8, q10, q12, q14
1:      vqmovn.s16 d16, q8
        vqmovn.s16 d17, q10
        vqmovn.s16 d18, q12
        vqmovn.s16 d19, q14
        each    vmax.s8, q4, q8, q9
        each    vmin.s8, q5, q8, q9
.endm

// On to the next 8 channels; `hi` if there are any.
.macro  next_channels bytes
        ldr     r1, [sp, #PANEL]
        ldr     r2, [sp, #PANEL_BYTES]
        ldr     r3, [sp, #OUT_BASE]
        ldr     r4, [sp, #RESIDUAL_BASE]
        ldr     r5, [sp, #OFFSET]
        ldr     r6, [sp, #CHANNELS]
        ldr     r7, [sp, #MARKS]
        ldr     r8, [sp, #PANEL_MARKS]
        add     r1, r1, r2
        add     r3, r3, #\bytes
        add     r4, r4, #8
        add     r5, r5, #32
        add     r7, r7, r8
        subs    r6, r6, #8
        str     r1, [sp, #PANEL]
        str     r3, [sp, #OUT_BASE]
        str     r4, [sp, #RESIDUAL_BASE]
        str     r5, [sp, #OFFSET]
        str     r6, [sp, #CHANNELS]
        str     r7, [sp, #MARKS]
.endm

// A whole kernel, with loops over channel tiles (outer), whose weights serve all pixels, and pixel
// tiles (inner). The stores move `out`.
.macro  igemm_4x8 name, to, residual=0
func    n8_igemm_\name
        begin   \to
.Lchannels\@:
        begin_channels \to
.Lpixels\@:
        cmp     pixels, #1
        beq     .Lone\@
        accumulate
.Lsummed\@:
    .ifc \to, f32
        scale_tile
        add     ptr0, constants, #BIAS_F32
        vldmia  ptr0, {q2-q3}
        by_channel vadd.f32, q2, q3
    .endif
        ldr     ptr0, [sp, #USUAL]
        cmp     pixels, ptr0
        blo     .Lgeneral\@
    .ifc \to, s8
        requantize \residual
        vst1.8  {d16}, [out], out_stride
        vst1.8  {d17}, [out], out_stride
        vst1.8  {d18}, [out], out_stride
        vst1.8  {d19}, [out], out_stride
    .else
        vst1.32 {d16-d19}, [out], out_stride
        vst1.32 {d20-d23}, [out], out_stride
        vst1.32 {d24-d27}, [out], out_stride
        vst1.32 {d28-d31}, [out], out_stride
    .endif
.Lnext\@:
        subs    pixels, pixels, #4
        bhi     .Lpixels\@
    .ifc \to, s8
        next_channels 8
    .else
        next_channels 32
    .endif
        bhi     .Lchannels\@
        pop_all FRAME

.Lone\@:
        bl      n8_igemm_4x8_one
        b       .Lsummed\@
.Lgeneral\@:
    .ifc \to, s8
        bl      n8_igemm_4x8_scale
      .if \residual
        bl      n8_igemm_4x8_residual
        bl      n8_igemm_4x8_add
      .endif
        bl      n8_igemm_4x8_round
        bl      n8_igemm_4x8_edge
    .else
        bl      n8_igemm_4x8_edge32
    .endif
        b       .Lnext\@
endfunc n8_igemm_\name
.endm

// Functions that kernels call with their registers and their stack, for the general path and to add
// residuals.

// The accumulators of one pixel. Others' are whatever they were.
func    n8_igemm_4x8_one
        ldr     ptr1, [sp, #ARGS]
        ldrd    weights, taps_left, [sp, #PANEL]
        ldr     ptr1, [ptr1, #N8_OFF_IG_DEPTH]
        vldmia  sp, {d16-d19}
1:      ldr     ptr0, [cursor], #16
        mov     left, ptr1
2:      vld4.16 {d0[], d1[], d2[], d3[]}, [ptr0]!
        vld1.8  {d8-d11}, [weights]!
        vld1.8  {d12-d15}, [weights]!
        vmull.s8 q2, d0, d8
        vmull.s8 q3, d0, d9
        vmlal.s8 q2, d1, d10
        vmlal.s8 q3, d1, d11
        vmull.s8 q4, d2, d12
        vmull.s8 q5, d2, d13
        add_products q8, q9, q2, q3
        vmlal.s8 q4, d3, d14
        vmlal.s8 q5, d3, d15
        subs    left, left, #8
        add_products q8, q9, q4, q5
        bne     2b
        subs    taps_left, taps_left, #1
        bne     1b
        bx      lr
endfunc n8_igemm_4x8_one

// Accumulators to floats. Changes q0-q2 and ptr0.
func    n8_igemm_4x8_scale
        add     ptr0, constants, #START_BITS
        vldmia  ptr0, {q2}
        on_tile vsub.i32, q2
        scale_tile
        bx      lr
endfunc n8_igemm_4x8_scale

// Loads the residual of a tile into d12-d15, for pixels that do not exist that of the last one that
// does; the bytes after the last channel are slack. Changes ptr0-ptr2.
func    n8_igemm_4x8_residual
        ldr     ptr0, [sp, #RESIDUAL]
        ldr     ptr1, [sp, #RESIDUAL_STRIDE]
        add     ptr2, ptr0, ptr1, lsl #2
        str     ptr2, [sp, #RESIDUAL]
        vld1.8  {d12}, [ptr0]
        cmp     pixels, #2
        addhs   ptr0, ptr0, ptr1
        vld1.8  {d13}, [ptr0]
        cmp     pixels, #3
        addhs   ptr0, ptr0, ptr1
        vld1.8  {d14}, [ptr0]
        cmp     pixels, #4
        addhs   ptr0, ptr0, ptr1
        vld1.8  {d15}, [ptr0]
        bx      lr
endfunc n8_igemm_4x8_residual

// Adds the residual in d12-d15 to floats: v = fadd(v, fmul((float)(residual[p][n] -
// residual_zero_point), residual_scale)) (6). Changes q0-q7 and ptr0.
.macro  add_residual row, low, high, v0, v1
        vaddw.s16 q1, q2, \low
        vaddw.s16 \row, q2, \high
        vsub.f32 q1, q1, q2
        vsub.f32 \row, \row, q2
        vmul.f32 q1, q1, q0
        vmul.f32 \row, \row, q0
        vadd.f32 \v0, \v0, q1
        vadd.f32 \v1, \v1, \row
.endm

func    n8_igemm_4x8_add
        add     ptr0, constants, #RESIDUAL_SCALE
        vldmia  ptr0, {q0-q1}
        vldr    d4, [constants, #MAGIC]
        vldr    d5, [constants, #MAGIC]
        vsubl.s8 q4, d12, d2
        vsubl.s8 q5, d13, d2
        vsubl.s8 q6, d14, d2
        vsubl.s8 q7, d15, d2
        add_residual q4, d8, d9, q8, q9
        add_residual q5, d10, d11, q10, q11
        add_residual q6, d12, d13, q12, q13
        add_residual q7, d14, d15, q14, q15
        bx      lr
endfunc n8_igemm_4x8_add

// Floats to int8, pixels 0 and 1 in q8, 2 and 3 in q9: leaky by the slopes if there are any (5b),
// rounded, with the zero point, and clamped (5). Bounds: as in round16 of asm.h; kernel.h excludes
// NaN. Changes q0-q5, q10-q15, ptr0 and ptr1.
func    n8_igemm_4x8_round
        ldr     ptr0, [sp, #ARGS]
        ldr     ptr1, [sp, #OFFSET]
        ldr     ptr0, [ptr0, #N8_OFF_IG_SLOPE]
        cmp     ptr0, #0
        beq     1f
        add     ptr0, ptr0, ptr1
        vldmia  ptr0, {q4-q5}
        leaky   q4, q0, q1, q8, q10, q12, q14
        leaky   q5, q0, q1, q9, q11, q13, q15
1:      add     ptr0, constants, #MAGIC
        vldmia  ptr0, {q2-q5}
        round   q2, q8, q9, q10, q11, q12, q13, q14, q15
        vqmovn.s32 d16, q8
        vqmovn.s32 d17, q9
        vqmovn.s32 d18, q10
        vqmovn.s32 d19, q11
        vqmovn.s32 d20, q12
        vqmovn.s32 d21, q13
        vqmovn.s32 d22, q14
        vqmovn.s32 d23, q15
        add     ptr0, constants, #ZERO_POINT
        vldmia  ptr0, {q0}
        each    vqadd.s16, q0, q8, q9, q10, q11
        vqmovn.s16 d16, q8
        vqmovn.s16 d17, q9
        vqmovn.s16 d18, q10
        vqmovn.s16 d19, q11
        each    vmax.s8, q4, q8, q9
        each    vmin.s8, q5, q8, q9
        bx      lr
endfunc n8_igemm_4x8_round

// Stores the bytes in q8 and q9, of the pixels and channels that exist. Moves `out`; changes q8,
// q9, ptr0, left and weights.
func    n8_igemm_4x8_edge
        ldr     weights, [sp, #CHANNELS]
        mov     left, pixels
        cmp     left, #4
        movhi   left, #4
1:      cmp     weights, #8
        blo     2f
        vst1.8  {d16}, [out], out_stride
        b       6f
2:      mov     ptr0, out
        tst     weights, #4
        beq     3f
        vst1.32 {d16[0]}, [ptr0]!
        vshr.u64 d16, d16, #32
3:      tst     weights, #2
        beq     4f
        vst1.16 {d16[0]}, [ptr0]!
        vshr.u64 d16, d16, #16
4:      tst     weights, #1
        beq     5f
        vst1.8  {d16[0]}, [ptr0]
5:      add     out, out, out_stride
6:      vmov    d16, d17
        vmov    d17, d18
        vmov    d18, d19
        subs    left, left, #1
        bne     1b
        bx      lr
endfunc n8_igemm_4x8_edge

// The same for 32-bit results in q8-q15. Changes q8-q13, ptr0, left and weights.
func    n8_igemm_4x8_edge32
        ldr     weights, [sp, #CHANNELS]
        mov     left, pixels
        cmp     left, #4
        movhi   left, #4
1:      cmp     weights, #8
        blo     2f
        vst1.32 {d16-d19}, [out], out_stride
        b       6f
2:      mov     ptr0, out
        store_last32 ptr0, weights
        add     out, out, out_stride
6:      vmov    q8, q10
        vmov    q9, q11
        vmov    q10, q12
        vmov    q11, q13
        vmov    q12, q14
        vmov    q13, q15
        subs    left, left, #1
        bne     1b
        bx      lr
endfunc n8_igemm_4x8_edge32

igemm_4x8 s8_s32_neon, s32
igemm_4x8 s8_f32_neon, f32
igemm_4x8 s8_s8_neon, s8
igemm_4x8 s8_s8_add_neon, s8, residual=1
