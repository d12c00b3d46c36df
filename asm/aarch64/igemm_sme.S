// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM by outer products of SME, of windows of an image (WINDOWS):
//
//   acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[t][p][k] * w[n][t][k]     (3)(12)
//   s32   out[p][n] = acc''[p][n]
//   f32   out[p][n] = fadd(fmul((float) acc''[p][n], multiplier[n]), bias_f32[n])          (4)
//   s8    v = fmul((float) acc''[p][n], multiplier[n]),
//   add   v = fadd(that, fmul((float)(residual[p][n] - residual_zero_point), residual_scale))  (6)
//         leaky by slope[n] if there is one                                                 (5b)
//         out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                     (5)
//
//   void n8_igemm_s8_s8_...(const struct n8_igemm_args *args);
//
// Streaming mode is entered once, for all that `next` leads to. The rows of a block of pixels are
// packed, by tiles of ZA that are written as rows and read as columns; then each block of channels
// is multiplied.
//
// A vector of a processor that streams has 4, 8, 16, 32 or 64 words, W. smopa takes 4 bytes of each
// of W pixels and of W channels and adds their W x W dot products to a tile of ZA, of which there
// are four: the sums of W pixels and 4 W channels. A step of packed rows is 16 pixels, and one of
// weights 64 channels, whatever W is. Where it is 4 or 8, a block is a part of them; where it is 32
// or 64, predicates leave away what is beyond them. A step is 4 bytes of all, and as those of all
// taps follow each other, there is one loop over them.
//
//               w z1 (p1) | z2 (p2) | z3 (p3) | z4 (p4)     4 bytes of W channels each
//   a z0 (p0)     za0     | za1     | za2     | za3         row p: pixel p
//
// Predicates p1-p4: the channels of the block as words, p6: as bytes; p0: 64 bytes; p5: all; p7: the
//   words of rows that are packed.
// A block of channels has first sums z16-z19, multipliers z20-z23, what is added z24-z27, slopes
//   z28-z31. All have limits less the zero point z8, z9, the zero point z10, scale and zero point of
//   the residual z11, z12, limits as 16 bits z13, z14.
// Stack: 288 bytes: callee-saved registers, what smstart and smstop do to vectors making all of
//   d8-d15 saved ones; and where 16 rows of a tap lie.
// ZA: this is a function with a private-ZA interface. If the caller's ZA is dormant, it is saved as
//   TPIDR2_EL0 says, as __arm_tpidr2_save does, of which not every C library has one.
// Bounds: smopa adds four exact products to int32, which is proved by (12). fcvtzs saturates to 32
//   bits, and limits come before the zero point. The layout of all arrays: runtime/kernel.h.
#include "asm.h"
#include "kernel.h"

#ifndef N8_NO_SME

        registers x, 0, args, out, out_stride, rows_end, panel, channels, count, offset
        registers x, 8, pixel_end, size, pixels, block, slice, step, weights, ptr, temp, other
        registers x, 19, kind, most_channels, most_pixels, residual, residual_stride, out_base
        registers x, 25, windows, first, row, column, left, unit
slice_w .req w12
kind_then .req x6           // as it begins
#define SAVED           D8_TO_D15, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30
#define FRAME           288
#define ROWS            160     // of the frame

// What packs rows has names of its own for those that it may change.
        registers x, 1, image, padding, to, tiles, depth, y, x_at, rest, tap_row, tap, height
        registers x, 13, width, pixel_step
        registers x, 22, word, rows, column_to

// Bits of `kind`, and what kernels begin with.
#define IS_ADD          0       // adds a residual
#define IS_SUMS         1       // stores the sums
#define IS_REAL         2       // stores floats
#define IS_FUSED        3       // (5d) holds for the block
#define ADD             1
#define SUMS            2
#define REAL            4

// The words of the block's channels in an array, at ptr.
.macro  load_words a, b, c, d
        add     ptr, ptr, offset
        ld1w    {\a\().s}, p1/z, [ptr]
        ld1w    {\b\().s}, p2/z, [ptr, #1, mul vl]
        ld1w    {\c\().s}, p3/z, [ptr, #2, mul vl]
        ld1w    {\d\().s}, p4/z, [ptr, #3, mul vl]
.endm

// The sums of a pixel.
.macro  take_row
        mova    z0.s, p5/m, za0h.s[slice_w, 0]
        mova    z1.s, p5/m, za1h.s[slice_w, 0]
        mova    z2.s, p5/m, za2h.s[slice_w, 0]
        mova    z3.s, p5/m, za3h.s[slice_w, 0]
.endm

// Its floats, multiplied by others or added to them.
.macro  row_by  op, a, b, c, d
        \op    z0.s, z0.s, \a\().s
        \op    z1.s, z1.s, \b\().s
        \op    z2.s, z2.s, \c\().s
        \op    z3.s, z3.s, \d\().s
.endm

// On to the next pixel, or out of a loop over those of a block.
.macro  next_row again
        add     slice, slice, #1
        add     out, out, out_stride
        cmp     slice, block
        b.ne    \again
.endm

.macro  leaky_words v, slopes
        fcmlt   p7.s, p5/z, \v\().s, #0.0
        fmul    \v\().s, p7/m, \v\().s, \slopes\().s
.endm

func    n8_igemm_s8_s8_sme, SME
        mov     kind_then, #0
.Lkind_sme:
        enter   FRAME, SAVED
        mov     kind, kind_then

        // What the caller has in ZA, if anything: a buffer, and how many vectors go there.
        mrs     temp, tpidr2_el0
        cbz     temp, 3f
        ldr     ptr, [temp]
        ldrh    w17, [temp, #8]
        rdsvl   step, #1
        mov     slice, #0
        cbz     ptr, 2f
1:      cmp     slice, other
        b.hs    2f
        str     za[slice_w, 0], [ptr]
        add     ptr, ptr, step
        add     slice, slice, #1
        b       1b
2:      msr     tpidr2_el0, xzr

3:      smstart
        cntw    most_pixels
        mov     temp, #16
        mov     other, #64
        lsl     most_channels, most_pixels, #2
        cmp     most_pixels, temp
        csel    most_pixels, most_pixels, temp, lo
        csel    most_channels, most_channels, other, lo
        ptrue   p5.b
        whilelo p0.b, xzr, other
        ldp     w16, w17, [args, #N8_OFF_IG_ZERO_POINT]          // and lo
        ldr     w15, [args, #N8_OFF_IG_HI]
        mov     z10.b, w16
        mov     z13.h, w17
        mov     z14.h, w15
        sub     w17, w17, w16
        sub     w15, w15, w16
        mov     z8.s, w17
        mov     z9.s, w15
        ldp     w16, w17, [args, #N8_OFF_IG_RESIDUAL_SCALE]      // and its zero point
        mov     z11.s, w16
        mov     z12.s, w17

.Lnext_sme:
        ldr     windows, [args, #N8_OFF_IG_WINDOWS]
        mov     first, #0
        ldp     row, column, [windows, #N8_OFF_WN_Y]             // and x
        ldr     left, [windows, #N8_OFF_WN_LEFT]

        // A unit: pixels that are packed together, 16 by 16.
.Lunit_sme:
        ldr     temp, [args, #N8_OFF_IG_PIXELS]
        ldp     to, unit, [windows, #N8_OFF_WN_PACKED]           // and block
        ldr     depth, [args, #N8_OFF_IG_DEPTH]
        sub     temp, temp, first
        cmp     unit, temp
        csel    unit, unit, temp, lo
        lsr     depth, depth, #2                // in words
        mov     tiles, unit
.Ltile_sme:
        mov     tap_row, #0
        mov     tap, #0

        // Where the rows of a tap lie.
.Ltap_sme:
        ldp     image, padding, [windows, #N8_OFF_WN_IMAGE]
        ldp     height, width, [windows, #N8_OFF_WN_HEIGHT]
        ldr     pixel_step, [windows, #N8_OFF_WN_STEP]
        add     y, row, tap_row
        add     x_at, column, tap
        mov     rest, left
        add     ptr, sp, #ROWS
        add     rows, sp, #ROWS + 128
1:      add     temp, image, y
        cmp     x_at, width
        ccmp    y, height, #2, lo
        add     temp, temp, x_at
        csel    temp, temp, padding, lo
        str     temp, [ptr], #8
        add     x_at, x_at, pixel_step
        subs    rest, rest, #1
        b.ne    2f
        ldp     rest, temp, [windows, #N8_OFF_WN_COLUMNS]        // and row_step
        msub    x_at, rest, pixel_step, x_at
        add     y, y, temp
2:      cmp     ptr, rows
        b.ne    1b
        sub     y, y, tap_row
        sub     x_at, x_at, tap

        // As many words of each as a vector has, which ZA turns over.
        mov     word, #0
3:      whilelo p7.s, word, depth
        sub     ptr, rows, #128
        mov     image, to
4:      mov     slice, #0
5:      ldp     temp, other, [ptr], #16
        ld1w    {za0h.s[slice_w, 0]}, p7/z, [temp, word, lsl #2]
        ld1w    {za0h.s[slice_w, 1]}, p7/z, [other, word, lsl #2]
        add     slice, slice, #2
        cmp     slice, most_pixels
        b.ne    5b
        cntp    temp, p5, p7.s
        mov     column_to, image
        mov     slice, #0
6:      st1w    {za0v.s[slice_w, 0]}, p0, [column_to]
        add     slice, slice, #1
        add     column_to, column_to, #64
        cmp     slice, temp
        b.ne    6b
        add     image, image, most_pixels, lsl #2
        cmp     ptr, rows
        b.ne    4b
        add     to, to, temp, lsl #6
        incw    word
        cmp     word, depth
        b.lo    3b

        ldp     temp, other, [windows, #N8_OFF_WN_TAP]           // and taps
        add     tap, tap, temp
        cmp     tap, other
        b.ne    .Ltap_sme
        mov     tap, #0
        ldp     temp, other, [windows, #N8_OFF_WN_TAP_ROW]       // and tap_rows
        add     tap_row, tap_row, temp
        cmp     tap_row, other
        b.ne    .Ltap_sme
        mov     row, y
        mov     column, x_at
        mov     left, rest
        subs    tiles, tiles, #16
        b.hi    .Ltile_sme

        ldp     size, temp, [args, #N8_OFF_IG_TAPS]              // and depth
        ldr     rows_end, [windows, #N8_OFF_WN_PACKED]
        ldp     out_base, out_stride, [args, #N8_OFF_IG_OUT]
        ldr     panel, [args, #N8_OFF_IG_WEIGHTS]
        ldr     channels, [args, #N8_OFF_IG_CHANNELS]
        ldp     residual, residual_stride, [args, #N8_OFF_IG_RESIDUAL]
        mul     size, size, temp
        lsl     size, size, #4
        add     rows_end, rows_end, size
        madd    out_base, first, out_stride, out_base
        madd    residual, first, residual_stride, residual
        mov     offset, #0

        // A block of channels, which all of its pixels read.
.Lchannels_sme:
        cmp     channels, most_channels
        csel    count, channels, most_channels, lo
        lsl     other, count, #2
        rdvl    temp, #1
        whilelo p1.b, xzr, other
        rdvl    ptr, #2
        whilelo p2.b, temp, other
        rdvl    temp, #3
        whilelo p3.b, ptr, other
        whilelo p4.b, temp, other
        whilelo p6.b, xzr, count
        ldr     ptr, [args, #N8_OFF_IG_BIAS]
        ldr     other, [args, #N8_OFF_IG_START]
        and     kind, kind, #~(1 << IS_FUSED)
        cbz     other, 4f
        and     temp, offset, #~255             // the first channel of the panel tells
        ldr     w16, [other, temp]
        cbz     w16, 4f
        mov     ptr, other
        orr     kind, kind, #1 << IS_FUSED
4:      load_words z16, z17, z18, z19
        tbnz    kind, #IS_SUMS, 7f
        ldr     ptr, [args, #N8_OFF_IG_MULTIPLIER]
        load_words z20, z21, z22, z23
        tst     kind, #1 << IS_FUSED | REAL
        b.eq    5f
        ldr     ptr, [args, #N8_OFF_IG_BIAS_F32]
        load_words z24, z25, z26, z27
5:      ldr     ptr, [args, #N8_OFF_IG_SLOPE]
        cbz     ptr, 7f
        load_words z28, z29, z30, z31
7:      mov     out, out_base
        mov     ptr, residual
        mov     pixel_end, rows_end
        mov     pixels, unit

        // A block of pixels.
.Lpixels_sme:
        cmp     pixels, most_pixels
        csel    block, pixels, most_pixels, lo
        zero    {za}
        addha   za0.s, p5/m, p5/m, z16.s
        addha   za1.s, p5/m, p5/m, z17.s
        addha   za2.s, p5/m, p5/m, z18.s
        addha   za3.s, p5/m, p5/m, z19.s
        neg     step, size
        mov     weights, panel
        cntw    temp, all, mul #2
        mov     slice, #0
        cmp     count, temp
        b.ls    2f
1:      ld1b    {z0.b}, p0/z, [pixel_end, step]
        ld1b    {z1.b}, p1/z, [weights]
        ld1b    {z2.b}, p2/z, [weights, #1, mul vl]
        ld1b    {z3.b}, p3/z, [weights, #2, mul vl]
        ld1b    {z4.b}, p4/z, [weights, #3, mul vl]
        smopa   za0.s, p0/m, p1/m, z0.b, z1.b
        smopa   za1.s, p0/m, p2/m, z0.b, z2.b
        add     weights, weights, #256
        smopa   za2.s, p0/m, p3/m, z0.b, z3.b
        adds    step, step, #64
        smopa   za3.s, p0/m, p4/m, z0.b, z4.b
        b.ne    1b
        b       3f

        // The same for few channels.
2:      ld1b    {z0.b}, p0/z, [pixel_end, step]
        ld1b    {z1.b}, p1/z, [weights]
        ld1b    {z2.b}, p2/z, [weights, #1, mul vl]
        add     weights, weights, #256
        smopa   za0.s, p0/m, p1/m, z0.b, z1.b
        adds    step, step, #64
        smopa   za1.s, p0/m, p2/m, z0.b, z2.b
        b.ne    2b

3:      tbz     kind, #IS_FUSED, 5f

        // Sums that began with a start are floats of 1.5 * 2^23 and more (5d).
4:      take_row
        fmad    z0.s, p5/m, z20.s, z24.s
        fmad    z1.s, p5/m, z21.s, z25.s
        fmad    z2.s, p5/m, z22.s, z26.s
        fmad    z3.s, p5/m, z23.s, z27.s
        uzp1    z0.h, z0.h, z1.h
        uzp1    z2.h, z2.h, z3.h
        sclamp  z0.h, z13.h, z14.h
        sclamp  z2.h, z13.h, z14.h
        uzp1    z0.b, z0.b, z2.b
        st1b    {z0.b}, p6, [out]
        next_row 4b
        b       .Lstored_sme

5:      ldr     temp, [args, #N8_OFF_IG_SLOPE]
6:      take_row
        tbnz    kind, #IS_SUMS, 9f
        .irp    v, z0.s, z1.s, z2.s, z3.s
        scvtf   \v, p5/m, \v
        .endr
        row_by  fmul, z20, z21, z22, z23
        tbnz    kind, #IS_REAL, 8f
        tbz     kind, #IS_ADD, 7f
        ld1sb   {z4.s}, p1/z, [ptr]
        ld1sb   {z5.s}, p2/z, [ptr, #1, mul vl]
        ld1sb   {z6.s}, p3/z, [ptr, #2, mul vl]
        ld1sb   {z7.s}, p4/z, [ptr, #3, mul vl]
        .irp    v, z4.s, z5.s, z6.s, z7.s
        sub     \v, \v, z12.s
        scvtf   \v, p5/m, \v
        fmul    \v, \v, z11.s
        .endr
        row_by  fadd, z4, z5, z6, z7
        add     ptr, ptr, residual_stride
7:      cbz     temp, 7f
        leaky_words z0, z28
        leaky_words z1, z29
        leaky_words z2, z30
        leaky_words z3, z31
7:
        .irp    v, z0.s, z1.s, z2.s, z3.s
        frintn  \v, p5/m, \v
        fcvtzs  \v, p5/m, \v
        sclamp  \v, z8.s, z9.s
        .endr
        uzp1    z0.h, z0.h, z1.h
        uzp1    z2.h, z2.h, z3.h
        uzp1    z0.b, z0.b, z2.b
        add     z0.b, z0.b, z10.b
        st1b    {z0.b}, p6, [out]
        next_row 6b
        b       .Lstored_sme

8:      row_by  fadd, z24, z25, z26, z27
9:      st1w    {z0.s}, p1, [out]
        st1w    {z1.s}, p2, [out, #1, mul vl]
        st1w    {z2.s}, p3, [out, #2, mul vl]
        st1w    {z3.s}, p4, [out, #3, mul vl]
        next_row 6b

        // The next pixels, of this tile of rows or of the next one.
.Lstored_sme:
        add     pixel_end, pixel_end, block, lsl #2
        sub     temp, pixel_end, rows_end
        tst     temp, #63
        add     temp, pixel_end, size
        sub     temp, temp, #64
        csel    pixel_end, temp, pixel_end, eq
        subs    pixels, pixels, block
        b.ne    .Lpixels_sme

        // The next channels, of this panel or of the next one.
        lsl     temp, count, #2
        add     panel, panel, temp
        add     offset, offset, temp
        tst     offset, #255
        add     other, panel, size, lsl #2
        sub     other, other, #256
        csel    panel, other, panel, eq
        tst     kind, #SUMS | REAL
        csel    temp, count, temp, eq
        add     out_base, out_base, temp
        add     residual, residual, count
        subs    channels, channels, count
        b.ne    .Lchannels_sme

        ldr     temp, [args, #N8_OFF_IG_PIXELS]
        add     first, first, unit
        cmp     first, temp
        b.ne    .Lunit_sme
        ldr     args, [windows, #N8_OFF_WN_NEXT]
        cbnz    args, .Lnext_sme
        smstop
        leave   FRAME, SAVED
        ret
endfunc n8_igemm_s8_s8_sme

.macro  other_kind slot, kind
func    n8_igemm_\slot\()_sme
        mov     kind_then, #\kind
        b       .Lkind_sme
endfunc n8_igemm_\slot\()_sme
.endm

other_kind s8_s8_add, ADD
other_kind s8_s32, SUMS
other_kind s8_f32, REAL

#endif // N8_NO_SME
