// SPDX-License-Identifier: Apache-2.0
//
// v = fmul((float) acc''[p][c], multiplier[c]), leaky by slope[c] if there is one       (5b)
// out[p][c] = clamp(rne(v) + zero_point, lo, hi)                                         (5)
// acc''[p][c] = bias[c] + sum over y, x of rows[y][p * step + x * tap_stride + c] * w[y][x][c]
// for 3 x 3 taps and step = tap_stride.
//
//   void n8_depthwise3x3s1_s8_dotprod(const struct n8_depthwise_args *args);
//
// A group of 4 outputs needs 6 inputs of each row. Those of a channel are brought together, four
// at a time, and one dot product is a row of an output: with weights w0 w1 w2 0 for the first of
// the four inputs, with 0 w0 w1 w2 for the second.
//
//   0 1 2 3        inputs
//   w w w 0        output 0
//   0 w w w        output 1
//       2 3 4 5
//       w w w 0    output 2
//       0 w w w    output 3
//
// The last group of a row ends with the row; where a row has fewer than 4 outputs, inputs beyond
// its last are that one once more, and the outputs that see them are not stored.
//
// Bounds: sdot adds exact products to int32, which is proved by (12).
// Registers: below, and depthwise_s8_save.inc.
//
//   weights of a row    w w w 0: v0 v1, v4 v5, v8 v17    0 w w w: v2 v3, v6 v7, v30 v31
//                       of channels 0-3 and 4-7
//   inputs              v9-v14, by channels v18-v21
//
// Stack: depthwise_s8_save.inc.
#include "asm.h"
#include "kernel.h"

#define args            x0
#define row0            x1
#define row1            x2
#define row2            x3
#define pixel1          x4
#define pixel2          x5
#define pixel3          x6
#define pixel4          x7
#define pixel5          x8
#define advance         x9
#define left            x10
#define out             x11
#define out_stride      x12
#define bias            x13
#define multiplier      x14
#define slope           x15
#define temp0           x16
#define temp0w          w16
#define temp1           x17
#define weights         x20
#define channels        x21
#define pixels          x23
#define channel         x24

#define biasl           v9
#define biash           v10

func    n8_depthwise3x3s1_s8_dotprod
#include "depthwise_s8_save.inc"

        ldr     out_stride, [args, #N8_OFF_DW_OUT_STRIDE]
        ldr     pixel1, [args, #N8_OFF_DW_TAP_STRIDE]
        ldp     weights, pixels, [args, #N8_OFF_DW_WEIGHTS]
        ldr     channels, [args, #N8_OFF_DW_CHANNELS]
        ldp     bias, multiplier, [args, #N8_OFF_DW_BIAS]
        ldr     slope, [args, #N8_OFF_DW_SLOPE]
        mov     channel, #0
        // From the first input of a group to the others.
        lsl     pixel2, pixel1, #1
        add     pixel3, pixel2, pixel1
        lsl     pixel4, pixel1, #2
        add     pixel5, pixel4, pixel1
        mov     advance, pixel4
        cmp     pixels, #2
        csel    pixel3, pixel2, pixel3, lo
        csel    pixel4, pixel3, pixel4, ls
        cmp     pixels, #3
        csel    pixel5, pixel4, pixel5, ls

.Lchannels:
        movi    v21.16b, #0
        ld1     {v18.8b, v19.8b, v20.8b}, [weights], #24
        zip1    v18.16b, v18.16b, v19.16b
        zip1    v20.16b, v20.16b, v21.16b
        zip1    v0.8h, v18.8h, v20.8h
        zip2    v1.8h, v18.8h, v20.8h
        shl     v2.4s, v0.4s, #8
        shl     v3.4s, v1.4s, #8
        ld1     {v18.8b, v19.8b, v20.8b}, [weights], #24
        zip1    v18.16b, v18.16b, v19.16b
        zip1    v20.16b, v20.16b, v21.16b
        zip1    v4.8h, v18.8h, v20.8h
        zip2    v5.8h, v18.8h, v20.8h
        shl     v6.4s, v4.4s, #8
        shl     v7.4s, v5.4s, #8
        ld1     {v18.8b, v19.8b, v20.8b}, [weights], #24
        zip1    v18.16b, v18.16b, v19.16b
        zip1    v20.16b, v20.16b, v21.16b
        zip1    v8.8h, v18.8h, v20.8h
        zip2    v17.8h, v18.8h, v20.8h
        shl     v30.4s, v8.4s, #8
        shl     v31.4s, v17.4s, #8
#include "depthwise_s8_bias.inc"
        stp     q9, q10, [sp, #128]
        ldr     temp0, [args, #N8_OFF_DW_ROWS]
        ldr     out, [args, #N8_OFF_DW_OUT]
        ldp     row0, row1, [temp0]
        ldr     row2, [temp0, #16]
        add     out, out, channel
        add     row0, row0, channel
        add     row1, row1, channel
        add     row2, row2, channel
        mov     left, pixels

        // The next row's inputs are loaded while one is multiplied.
.Lgroup:
        ldr     d9, [row0]
        ldr     d10, [row0, pixel1]
        ldr     d11, [row0, pixel2]
        ldr     d12, [row0, pixel3]
        ldr     d13, [row0, pixel4]
        ldr     d14, [row0, pixel5]
        add     row0, row0, advance
        zip1    v9.16b, v9.16b, v10.16b
        ldp     q22, q23, [sp, #128]
        zip1    v11.16b, v11.16b, v12.16b
        ldp     q24, q25, [sp, #128]
        zip1    v13.16b, v13.16b, v14.16b
        ldp     q26, q27, [sp, #128]
        zip1    v18.8h, v9.8h, v11.8h
        ldp     q28, q29, [sp, #128]
        zip2    v19.8h, v9.8h, v11.8h
        zip1    v20.8h, v11.8h, v13.8h
        zip2    v21.8h, v11.8h, v13.8h
        sdot    sum0l.4s, v18.16b, v0.16b
        ldr     d9, [row1]
        sdot    sum0h.4s, v19.16b, v1.16b
        ldr     d10, [row1, pixel1]
        sdot    sum1l.4s, v18.16b, v2.16b
        ldr     d11, [row1, pixel2]
        sdot    sum1h.4s, v19.16b, v3.16b
        ldr     d12, [row1, pixel3]
        sdot    sum2l.4s, v20.16b, v0.16b
        ldr     d13, [row1, pixel4]
        sdot    sum2h.4s, v21.16b, v1.16b
        ldr     d14, [row1, pixel5]
        sdot    sum3l.4s, v20.16b, v2.16b
        add     row1, row1, advance
        sdot    sum3h.4s, v21.16b, v3.16b
        zip1    v9.16b, v9.16b, v10.16b
        zip1    v11.16b, v11.16b, v12.16b
        zip1    v13.16b, v13.16b, v14.16b
        zip1    v18.8h, v9.8h, v11.8h
        zip2    v19.8h, v9.8h, v11.8h
        zip1    v20.8h, v11.8h, v13.8h
        zip2    v21.8h, v11.8h, v13.8h
        sdot    sum0l.4s, v18.16b, v4.16b
        ldr     d9, [row2]
        sdot    sum0h.4s, v19.16b, v5.16b
        ldr     d10, [row2, pixel1]
        sdot    sum1l.4s, v18.16b, v6.16b
        ldr     d11, [row2, pixel2]
        sdot    sum1h.4s, v19.16b, v7.16b
        ldr     d12, [row2, pixel3]
        sdot    sum2l.4s, v20.16b, v4.16b
        ldr     d13, [row2, pixel4]
        sdot    sum2h.4s, v21.16b, v5.16b
        ldr     d14, [row2, pixel5]
        sdot    sum3l.4s, v20.16b, v6.16b
        add     row2, row2, advance
        sdot    sum3h.4s, v21.16b, v7.16b
        zip1    v9.16b, v9.16b, v10.16b
        zip1    v11.16b, v11.16b, v12.16b
        zip1    v13.16b, v13.16b, v14.16b
        zip1    v18.8h, v9.8h, v11.8h
        zip2    v19.8h, v9.8h, v11.8h
        zip1    v20.8h, v11.8h, v13.8h
        zip2    v21.8h, v11.8h, v13.8h
        sdot    sum0l.4s, v18.16b, v8.16b
        add     temp0, sp, #112
        sdot    sum0h.4s, v19.16b, v17.16b
        ld1r    {magic.4s}, [temp0]
        sdot    sum1l.4s, v18.16b, v30.16b
        add     temp1, args, #N8_OFF_DW_ZERO_POINT
        ld1     {scalesl.4s, scalesh.4s}, [multiplier]
        sdot    sum1h.4s, v19.16b, v31.16b
        ld1r    {zp.8h}, [temp1]
        sdot    sum2l.4s, v20.16b, v8.16b
        add     temp0, args, #N8_OFF_DW_LO
        sdot    sum2h.4s, v21.16b, v17.16b
        ld1r    {qlo.16b}, [temp0]
        add     temp1, args, #N8_OFF_DW_HI
        sdot    sum3l.4s, v20.16b, v30.16b
        ld1r    {qhi.16b}, [temp1]
        sdot    sum3h.4s, v21.16b, v31.16b
#include "depthwise_s8_round4.inc"
        st1     {t0.d}[0], [out], out_stride
        cmp     left, #2
        b.lo    .Lnext
        st1     {t0.d}[1], [out], out_stride
        b.eq    .Lnext
        cmp     left, #4
        st1     {t2.d}[0], [out], out_stride
        b.lo    .Lnext
        st1     {t2.d}[1], [out], out_stride
        subs    left, left, #4
        b.eq    .Lnext
        cmp     left, #4
        b.hs    .Lgroup
        mov     temp0, #4
        sub     temp0, temp0, left
        msub    row0, temp0, pixel1, row0
        msub    row1, temp0, pixel1, row1
        msub    row2, temp0, pixel1, row2
        msub    out, temp0, out_stride, out
        mov     left, #4
        b       .Lgroup

.Lnext:
        add     multiplier, multiplier, #32
        add     temp0, slope, #32
        cmp     slope, #0
        csel    slope, xzr, temp0, eq
        add     channel, channel, #8
        cmp     channel, channels
        b.lo    .Lchannels
#include "depthwise_s8_restore.inc"
endfunc n8_depthwise3x3s1_s8_dotprod
