// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM by outer products of SME, of packed rows (BOTH):
//
//   acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[t][p][k] * w[n][t][k]     (3)(12)
//   s32   out[p][n] = acc''[p][n]
//   s8    v = fmul((float) acc''[p][n], multiplier[n]),
//   add   v = fadd(that, fmul((float)(residual[p][n] - residual_zero_point), residual_scale))  (6)
//         leaky by slope[n] if there is one                                                 (5b)
//         out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                     (5)
//
//   void n8_igemm_s8_...(const struct n8_igemm_args *args);
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
// Predicates p1-p4: the channels of the block as words, p6: as bytes; p0: 64 bytes; p5: all.
// A block of channels has first sums z16-z19, multipliers z20-z23, what is added z24-z27, slopes
//   z28-z31. All have limits less the zero point z8, z9, the zero point z10, scale and zero point of
//   the residual z11, z12, limits as 16 bits z13, z14.
// Stack: 112 bytes: callee-saved registers. What smstart and smstop do to vectors makes all of d8-d15
//   saved ones. Nothing else goes through memory.
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
slice_w .req w12
kind_then .req x6           // as it begins
#define SAVED           D8_TO_D15, x19, x20, x21, x22, x23, x24
#define FRAME           112

// Bits of `kind`, and what kernels begin with.
#define IS_ADD          0       // adds a residual
#define IS_SUMS         1       // stores the sums
#define IS_FUSED        2       // (5d) holds for the block
#define ADD             1
#define SUMS            2

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
        ldr     out_stride, [args, #N8_OFF_IG_OUT_STRIDE]
        ldr     out_base, [args, #N8_OFF_IG_OUT]
        ldr     rows_end, [args, #N8_OFF_IG_ROWS]
        ldr     panel, [args, #N8_OFF_IG_WEIGHTS]
        ldr     channels, [args, #N8_OFF_IG_CHANNELS]
        ldp     temp, size, [args, #N8_OFF_IG_TAPS]              // and depth
        ldp     residual, residual_stride, [args, #N8_OFF_IG_RESIDUAL]
        ldr     rows_end, [rows_end]
        mul     size, size, temp
        lsl     size, size, #4
        add     rows_end, rows_end, size
        mov     offset, #0

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

        // A block of channels, which all pixels read.
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
        tbz     kind, #IS_FUSED, 5f
        ldr     ptr, [args, #N8_OFF_IG_BIAS_F32]
        load_words z24, z25, z26, z27
5:      ldr     ptr, [args, #N8_OFF_IG_SLOPE]
        cbz     ptr, 7f
        load_words z28, z29, z30, z31
7:      mov     out, out_base
        mov     ptr, residual
        mov     pixel_end, rows_end
        ldr     pixels, [args, #N8_OFF_IG_PIXELS]

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
        b       9f

5:      ldr     temp, [args, #N8_OFF_IG_SLOPE]
6:      take_row
        tbnz    kind, #IS_SUMS, 8f
        .irp    v, z0.s, z1.s, z2.s, z3.s
        scvtf   \v, p5/m, \v
        .endr
        fmul    z0.s, z0.s, z20.s
        fmul    z1.s, z1.s, z21.s
        fmul    z2.s, z2.s, z22.s
        fmul    z3.s, z3.s, z23.s
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
        fadd    z0.s, z0.s, z4.s
        fadd    z1.s, z1.s, z5.s
        fadd    z2.s, z2.s, z6.s
        fadd    z3.s, z3.s, z7.s
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
        b       9f

8:      st1w    {z0.s}, p1, [out]
        st1w    {z1.s}, p2, [out, #1, mul vl]
        st1w    {z2.s}, p3, [out, #2, mul vl]
        st1w    {z3.s}, p4, [out, #3, mul vl]
        next_row 6b

        // The next pixels, of this tile of rows or of the next one.
9:      add     pixel_end, pixel_end, block, lsl #2
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
        tst     kind, #SUMS
        csel    temp, count, temp, eq
        add     out_base, out_base, temp
        add     residual, residual, count
        subs    channels, channels, count
        b.ne    .Lchannels_sme
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

#endif // N8_NO_SME
