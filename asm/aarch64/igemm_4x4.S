// SPDX-License-Identifier: Apache-2.0
//
// Implicit GEMM in tiles of 4 pixels x 4 channels, ordered for out-of-order cores, which begin one
// multiplication in a cycle, and one load of any width:
//
//   acc''[p][n] = bias[n] + sum over taps t and bytes k of rows[t][p][k] * w[n][t][k]     (3)(12)
//   f32   out[p][n] = fadd(fmul((float) acc''[p][n], multiplier[n]), bias_f32[n])              (4)
//   s8    v = fmul((float) acc''[p][n], multiplier[n]),
//   add   v = fadd(that, fmul((float)(residual[p][n] - residual_zero_point), residual_scale))  (6)
//         leaky by slope[n] if there is one                                                 (5b)
//         out[p][n] = clamp(rne(v) + zero_point, lo, hi)                                     (5)
//
//   void n8_igemm_s8_..._4x4(const struct n8_igemm_args *args);
//
//                     w0 v4   w1 v5   w2 v6   w3 v7      16 bytes of 4 channels
//          a0 v0      v16     v17     v18     v19
//          a1 v1      v20     v21     v22     v23        each accumulator holds 4 partial
//          a2 v2      v24     v25     v26     v27        sums of one pixel and one channel
//          a3 v3      v28     v29     v30     v31
//          16 bytes of 4 pixels; products go through v8-v15
//
// Bounds: |a| <= 128 and |w| + |w'| <= 255 for two weights of a channel (11), so the products that
//   share an int16 lane reach at most 32640; sadalp empties the lane before a third. int32 is
//   proved by (12).
// On arrival at the epilogue: sum0-sum3 (.4s); pixels and channels left (over 4 where tiles
//   follow); out, residual: this tile's; offset = 4 * its first channel. Free are v0-v15 and
//   what is no sum of v16-v31, ptr0-ptr3, weights, cursor, left, taps_left.
// Stack: 128 bytes, callee-saved registers.
// The layout of all arrays: runtime/kernel.h, whose demands runtime/conv proves.
#include "asm.h"
#include "kernel.h"

#define args            x0
#define ptr0            x1
#define ptr1            x2
#define ptr2            x3
#define ptr3            x4
#define weights         x5
#define panel           x6
#define cursor          x7
#define tile_rows       x8
#define left            x9
#define depth           x10
#define taps_left       x11
#define taps            x12
#define channels        x13
#define pixels          x14
#define out_base        x15
#define out             x16
#define out_stride      x17
#define bias            x19
#define multiplier      x20
#define bias_f32        x21
#define slope           x22
#define residual_base   x23
#define residual        x24
#define residual_stride x25
#define offset          x26
#define a0              v0
#define a1              v1
#define a2              v2
#define a3              v3
#define w0              v4
#define w1              v5
#define w2              v6
#define w3              v7
#define t0              v8
#define t1              v9
#define t2              v10
#define t3              v11
#define u0              v12
#define u1              v13
#define u2              v14
#define u3              v15
#define w0q             q4
#define w1q             q5
#define w2q             q6
#define w3q             q7
#define t0q             q8
#define acc00           v16
#define acc01           v17
#define acc02           v18
#define acc03           v19
#define acc10           v20
#define acc11           v21
#define acc12           v22
#define acc13           v23
#define acc20           v24
#define acc21           v25
#define acc22           v26
#define acc23           v27
#define acc30           v28
#define acc31           v29
#define acc32           v30
#define acc33           v31
#define sum0            v16
#define sum1            v20
#define sum2            v24
#define sum3            v28
#define SAVED           D8_TO_D15, x19, x20, x21, x22, x23, x24, x25, x26

// An operation of the sums with one vector, or with one for each.
.macro  each    op, a, b, c, d
        \op     sum0.4s, sum0.4s, \a\().4s
        \op     sum1.4s, sum1.4s, \b\().4s
        \op     sum2.4s, sum2.4s, \c\().4s
        \op     sum3.4s, sum3.4s, \d\().4s
.endm

        // The products of 16 bytes of a pixel in p0-p3, and its next 16, while those of the pixel
        // before, q0-q3, are added to its sums; beside the last pixel's, the next weights.
.macro  multiply a, ptr, p0, p1, p2, p3, q0, q1, q2, q3, s0, s1, s2, s3
        smull   \p0\().8h, \a\().8b, w0.8b
        smull   \p1\().8h, \a\().8b, w1.8b
        add_to  \s0, \q0
        smull   \p2\().8h, \a\().8b, w2.8b
        smull   \p3\().8h, \a\().8b, w3.8b
        add_to  \s1, \q1
        smlal2  \p0\().8h, \a\().16b, w0.16b
        smlal2  \p1\().8h, \a\().16b, w1.16b
    .ifc \ptr, ptr3
        ldp     w0q, w1q, [weights], #32
    .endif
        add_to  \s2, \q2
        smlal2  \p2\().8h, \a\().16b, w2.16b
        smlal2  \p3\().8h, \a\().16b, w3.16b
    .ifc \ptr, ptr3
        ldp     w2q, w3q, [weights], #32
    .endif
        add_to  \s3, \q3
        ld1     {\a\().16b}, [\ptr], #16
.endm

.macro  add_to  s, q
    .ifnb \s
        sadalp  \s\().4s, \q\().8h
    .endif
.endm

// The sums of one tile of pixels. The operands of the first step are loaded ahead.
.macro  sums
        ldp     ptr0, ptr1, [tile_rows]
        ldp     ptr2, ptr3, [tile_rows, #16]
        add     cursor, tile_rows, #32
        mov     weights, panel
        ld1     {a0.16b}, [ptr0], #16
        ldp     w0q, w1q, [weights], #32
        ldp     w2q, w3q, [weights], #32
        ld1     {a1.16b}, [ptr1], #16
        ld1     {a2.16b}, [ptr2], #16
        ld1     {a3.16b}, [ptr3], #16
        .irp    acc, acc00.4s, acc01.4s, acc02.4s, acc03.4s, acc10.4s, acc11.4s, acc12.4s, \
                     acc13.4s, acc20.4s, acc21.4s, acc22.4s, acc23.4s, acc30.4s, acc31.4s, \
                     acc32.4s, acc33.4s
        movi    \acc, #0
        .endr
        mov     left, depth
        mov     taps_left, taps

        // One step of 16 bytes. It loads the next step's operands; at the end of a tap these
        // come from the next tap's rows, and at the end of the last tap from the first again,
        // which may be read and is not used.
1:      subs    left, left, #16
        b.ne    2f
        subs    taps_left, taps_left, #1
        csel    cursor, tile_rows, cursor, eq
        csel    weights, panel, weights, eq
        ldp     ptr0, ptr1, [cursor], #16
        ldp     ptr2, ptr3, [cursor], #16
        mov     left, depth

2:      multiply a0, ptr0, t0, t1, t2, t3
        multiply a1, ptr1, u0, u1, u2, u3, t0, t1, t2, t3, acc00, acc01, acc02, acc03
        multiply a2, ptr2, t0, t1, t2, t3, u0, u1, u2, u3, acc10, acc11, acc12, acc13
        multiply a3, ptr3, u0, u1, u2, u3, t0, t1, t2, t3, acc20, acc21, acc22, acc23
        sadalp  acc30.4s, u0.8h
        sadalp  acc31.4s, u1.8h
        sadalp  acc32.4s, u2.8h
        sadalp  acc33.4s, u3.8h
        cbnz    taps_left, 1b

        // Reduction: pairwise additions leave the 4 channels of a pixel in one vector.
        ldr     t0q, [bias, offset]
        addp    acc00.4s, acc00.4s, acc01.4s
        addp    acc02.4s, acc02.4s, acc03.4s
        addp    acc10.4s, acc10.4s, acc11.4s
        addp    acc12.4s, acc12.4s, acc13.4s
        addp    acc20.4s, acc20.4s, acc21.4s
        addp    acc22.4s, acc22.4s, acc23.4s
        addp    acc30.4s, acc30.4s, acc31.4s
        addp    acc32.4s, acc32.4s, acc33.4s
        addp    sum0.4s, acc00.4s, acc02.4s
        addp    sum1.4s, acc10.4s, acc12.4s
        addp    sum2.4s, acc20.4s, acc22.4s
        addp    sum3.4s, acc30.4s, acc32.4s
        each    add, t0, t0, t0, t0
.endm

// Epilogue ------------------------------------------------------------------------------------

// From sums to floats: fmul((float) acc'', multiplier[n]). scvtf rounds to nearest even (7).
#define scales      v0
#define scalesq     q0
#define r_scale     v1
#define r_zp        v2
#define r_bytes     v3
#define r_low       v4
#define r_high      v5
#define r0          v6
#define r1          v7
#define r2          v8
#define r3          v9

.macro  scale
        ldr     scalesq, [multiplier, offset]
        scvtf   sum0.4s, sum0.4s
        scvtf   sum1.4s, sum1.4s
        scvtf   sum2.4s, sum2.4s
        scvtf   sum3.4s, sum3.4s
        each    fmul, scales, scales, scales, scales
.endm

// The same, and the residual.
//
// Bounds: |residual - zero point| <= 255 fits int16.
.macro  scale_add
        // The residual of pixels that do not exist is read from the last one that does; the
        // bytes after the last channel are slack.
        cmp     pixels, #2
        add     ptr1, residual, residual_stride
        csel    ptr1, ptr1, residual, hs
        add     ptr2, ptr1, residual_stride
        csel    ptr2, ptr2, ptr1, hi
        cmp     pixels, #4
        add     ptr3, ptr2, residual_stride
        csel    ptr3, ptr3, ptr2, hs
        ld1     {r_bytes.s}[0], [residual]
        ld1     {r_bytes.s}[1], [ptr1]
        ld1     {r_bytes.s}[2], [ptr2]
        ld1     {r_bytes.s}[3], [ptr3]
        add     ptr1, args, #N8_OFF_IG_RESIDUAL_ZERO_POINT
        add     ptr2, args, #N8_OFF_IG_RESIDUAL_SCALE
        ld1r    {r_zp.8h}, [ptr1]
        ld1r    {r_scale.4s}, [ptr2]
        ldr     scalesq, [multiplier, offset]
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
        each    fmul, scales, scales, scales, scales
        scvtf   r0.4s, r0.4s
        scvtf   r1.4s, r1.4s
        scvtf   r2.4s, r2.4s
        scvtf   r3.4s, r3.4s
        fmul    r0.4s, r0.4s, r_scale.4s
        fmul    r1.4s, r1.4s, r_scale.4s
        fmul    r2.4s, r2.4s, r_scale.4s
        fmul    r3.4s, r3.4s, r_scale.4s
        each    fadd, r0, r1, r2, r3
.endm

// To int8: leaky slope if there is one, rounding, zero point and clamp, and the stores of exactly
// the pixels and channels there are.
//
// Bounds: fcvtns saturates to 32 bits, everything after it to 16 and then 8, so nothing wraps and
//   the clamp sees the right side; NaN becomes 0.
#define negative0       v0
#define negative1       v1
#define negative2       v2
#define negative3       v3
#define scaled0         v4
#define scaled1         v5
#define scaled2         v6
#define scaled3         v7
#define zp              v8
#define qlo             v9
#define qhi             v10
#define slopes          v11
#define half0           v12
#define half1           v13
#define bytes           v14

.macro  to_s8   scale
        \scale
        add     ptr0, args, #N8_OFF_IG_ZERO_POINT
        add     ptr1, args, #N8_OFF_IG_LO
        add     ptr2, args, #N8_OFF_IG_HI
        ld1r    {zp.8h}, [ptr0]
        ld1r    {qlo.16b}, [ptr1]
        ld1r    {qhi.16b}, [ptr2]
        cbz     slope, 3f
        add     ptr0, slope, offset
        ld1     {slopes.4s}, [ptr0]
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

        // Low bytes of the int32 limits are the int8 limits. Pixel i ends in bytes 4i..4i+3.
3:      fcvtns  sum0.4s, sum0.4s
        fcvtns  sum1.4s, sum1.4s
        fcvtns  sum2.4s, sum2.4s
        fcvtns  sum3.4s, sum3.4s
        sqxtn   half0.4h, sum0.4s
        sqxtn   half1.4h, sum2.4s
        sqxtn2  half0.8h, sum1.4s
        sqxtn2  half1.8h, sum3.4s
        sqadd   half0.8h, half0.8h, zp.8h
        sqadd   half1.8h, half1.8h, zp.8h
        sqxtn   bytes.8b, half0.8h
        sqxtn2  bytes.16b, half1.8h
        smax    bytes.16b, bytes.16b, qlo.16b
        smin    bytes.16b, bytes.16b, qhi.16b

        // A full tile: four words.
        cmp     pixels, #4
        ccmp    channels, #4, #0, hs
        b.lo    4f
        add     ptr0, out, out_stride
        add     ptr1, out, out_stride, lsl #1
        add     ptr2, ptr0, out_stride, lsl #1
        st1     {bytes.s}[0], [out]
        st1     {bytes.s}[1], [ptr0]
        st1     {bytes.s}[2], [ptr1]
        st1     {bytes.s}[3], [ptr2]
        b       9f

        // The edge: pixel by pixel, the next word moving down to lane 0.
4:      mov     ptr0, out
        mov     left, #4
        cmp     pixels, left
        csel    left, pixels, left, lo
5:      mov     ptr1, ptr0
        cmp     channels, #4
        b.lo    6f
        st1     {bytes.s}[0], [ptr1]
        b       8f
6:      mov     half0.16b, bytes.16b
        tbz     channels, #1, 7f
        st1     {half0.h}[0], [ptr1], #2
        ext     half0.16b, half0.16b, half0.16b, #2
7:      tbz     channels, #0, 8f
        st1     {half0.b}[0], [ptr1]
8:      ext     bytes.16b, bytes.16b, bytes.16b, #4
        add     ptr0, ptr0, out_stride
        subs    left, left, #1
        b.ne    5b
9:
.endm

// To floats: adds the bias, and stores 32-bit results of exactly the pixels and channels there are.
#define biases          v1
#define biasesq         q1

.macro  to_f32
        ldr     scalesq, [multiplier, offset]
        ldr     biasesq, [bias_f32, offset]
        scvtf   sum0.4s, sum0.4s
        scvtf   sum1.4s, sum1.4s
        scvtf   sum2.4s, sum2.4s
        scvtf   sum3.4s, sum3.4s
        each    fmul, scales, scales, scales, scales
        each    fadd, biases, biases, biases, biases
        // A full tile: four vectors.
        cmp     pixels, #4
        ccmp    channels, #4, #0, hs
        b.lo    3f
        add     ptr0, out, out_stride
        add     ptr1, out, out_stride, lsl #1
        add     ptr2, ptr0, out_stride, lsl #1
        st1     {sum0.4s}, [out]
        st1     {sum1.4s}, [ptr0]
        st1     {sum2.4s}, [ptr1]
        st1     {sum3.4s}, [ptr2]
        b       8f

        // The edge: pixel by pixel, the 4 vectors moving up after each other.
3:      mov     ptr0, out
        mov     left, #4
        cmp     pixels, left
        csel    left, pixels, left, lo
4:      mov     ptr1, ptr0
        cmp     channels, #4
        b.lo    5f
        st1     {sum0.4s}, [ptr1]
        b       7f
5:      tbz     channels, #1, 6f
        st1     {sum0.2s}, [ptr1], #8
        ext     sum0.16b, sum0.16b, sum0.16b, #8
6:      tbz     channels, #0, 7f
        st1     {sum0.s}[0], [ptr1]
7:      mov     sum0.16b, sum1.16b
        mov     sum1.16b, sum2.16b
        mov     sum2.16b, sum3.16b
        add     ptr0, ptr0, out_stride
        subs    left, left, #1
        b.ne    4b
8:
.endm

// name: of the function. bytes: of 4 channels of output. scale, to: the macros above for its
// epilogue.
.macro  igemm   name, bytes, to, scale
func    n8_igemm_\name
        enter   128, SAVED
        ldp     out_base, out_stride, [args, #N8_OFF_IG_OUT]
        ldr     panel, [args, #N8_OFF_IG_WEIGHTS]
        ldr     channels, [args, #N8_OFF_IG_CHANNELS]
        ldp     taps, depth, [args, #N8_OFF_IG_TAPS]
        ldp     bias, multiplier, [args, #N8_OFF_IG_BIAS]
        ldp     bias_f32, slope, [args, #N8_OFF_IG_BIAS_F32]
        ldp     residual_base, residual_stride, [args, #N8_OFF_IG_RESIDUAL]
        mov     offset, #0

        // One tile of channels: its weights, `panel`, serve all pixels.
.Lchannels\@:
        mov     out, out_base
        mov     residual, residual_base
        ldr     tile_rows, [args, #N8_OFF_IG_ROWS]
        ldr     pixels, [args, #N8_OFF_IG_PIXELS]

        // One tile of pixels.
.Lpixels\@:
        sums
        \to     \scale

        // A row of the pointer table is taps * 4 pointers.
        add     out, out, out_stride, lsl #2
        add     residual, residual, residual_stride, lsl #2
        add     tile_rows, tile_rows, taps, lsl #5
        subs    pixels, pixels, #4
        b.hi    .Lpixels\@

        mul     left, taps, depth
        add     panel, panel, left, lsl #2
        add     out_base, out_base, #\bytes
        add     residual_base, residual_base, #4
        add     offset, offset, #16
        subs    channels, channels, #4
        b.hi    .Lchannels\@

        leave   128, SAVED
        ret
endfunc n8_igemm_\name
.endm

igemm   s8_f32_neon_4x4, 16, to_f32
igemm   s8_s8_neon_4x4, 4, to_s8, scale
igemm   s8_s8_add_neon_4x4, 4, to_s8, scale_add
