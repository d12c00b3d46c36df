// SPDX-License-Identifier: Apache-2.0
//
// sums[p][c] = bias[c] + sum over y, x of in[y][p * step + x * tap_stride + c] * w[y][x][c]
//
//   void n8_depthwise_s16_s32_neon(const struct n8_depthwise_s16_args *args);
//
// Eight channels at a time, and of these four pixels: the last four once more where some are left.
//
//                  v0              weights of a tap
//   in             v16 .. v23      sums, two registers for each pixel
//   v4 v5 v6 v7
//
// In-order cores begin an operation on vectors and one on an address in the same cycle: no load
//   moves its address itself.
// Bounds: sums wrap.
// Registers: x0-x17, x19-x24, v0, v4-v7, v16-v25, see below.
// Stack: 48 bytes, x19-x24.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, sums, rows, weights, bias
        registers x, 6, step, pixels
        registers x, 8, channels, height, width, channel, y
        // channel: in bytes
        registers x, 14, pixel0, pixel1
        registers x, 19, row, w, left, at, to
        // at: of a pixel in its row, in bytes
sums_pixel .req x24
block      .req x0              // bytes of weights of eight channels
// In arguments of macros, where the preprocessor does not look.
        registers x, 16, pixel2, pixel3
tap     .req x5
x       .req x13

        // The products of one tap of a pixel, each with what may begin in the same cycle.
.macro  product in, low, high, with0, with1
        smlal   \low\().4s, v0.4h, \in\().4h
        \with0
        smlal2  \high\().4s, v0.8h, \in\().8h
        \with1
.endm

        // All taps of `count` pixels, 4 or 1.
.macro  taps    count
        mov     w, weights
        mov     row, rows
        mov     y, height
        mov     v16.16b, v24.16b
        mov     v17.16b, v25.16b
    .if \count > 1
        fill    mov, v24.16b, v18.16b, v20.16b, v22.16b
        fill    mov, v25.16b, v19.16b, v21.16b, v23.16b
    .endif
8:      ldr     pixel0, [row], #8
        mov     x, width
        add     pixel0, pixel0, at
    .if \count > 1
        add     pixel1, pixel0, step
        add     pixel2, pixel0, step, lsl #1
        add     pixel3, pixel1, step, lsl #1
    .endif
9:      ldr     q0, [w], #16
        ldr     q4, [pixel0]
        add     pixel0, pixel0, tap
    .if \count > 1
        ldr     q5, [pixel1]
        add     pixel1, pixel1, tap
        ldr     q6, [pixel2]
        product v4, v16, v17, "add pixel2, pixel2, tap", "ldr q7, [pixel3]"
        product v5, v18, v19, "add pixel3, pixel3, tap", "subs x, x, #1"
        product v6, v20, v21
        product v7, v22, v23
    .else
        product v4, v16, v17, "subs x, x, #1"
    .endif
        b.ne    9b
        subs    y, y, #1
        b.ne    8b
.endm

func    n8_depthwise_s16_s32_neon
        enter   48, x19, x20, x21, x22, x23, x24
        ldp     sums, rows, [args, #N8_OFF_DS_SUMS]
        ldp     weights, bias, [args, #N8_OFF_DS_WEIGHTS]
        ldp     tap, step, [args, #N8_OFF_DS_TAP_STRIDE]
        ldp     pixels, channels, [args, #N8_OFF_DS_PIXELS]
        ldp     height, width, [args, #N8_OFF_DS_KERNEL_HEIGHT]
        mul     block, height, width
        lsl     sums_pixel, channels, #2
        lsl     block, block, #4
        mov     channel, #0

1:      ldp     q24, q25, [bias], #32
        mov     to, sums
        mov     at, channel
        subs    left, pixels, #4
        b.lo    4f
2:      taps    4
        stp     q16, q17, [to]
        add     to, to, sums_pixel
        stp     q18, q19, [to]
        add     to, to, sums_pixel
        stp     q20, q21, [to]
        add     to, to, sums_pixel
        stp     q22, q23, [to]
        add     to, to, sums_pixel
        add     at, at, step, lsl #2
        cbz     left, 5f
        subs    left, left, #4
        b.hs    2b
        madd    at, left, step, at              // left is below 0: back
        madd    to, left, sums_pixel, to
        mov     left, #0
        b       2b

4:      add     left, left, #4
3:      taps    1
        stp     q16, q17, [to]
        add     to, to, sums_pixel
        add     at, at, step
        subs    left, left, #1
        b.ne    3b

5:      add     weights, weights, block
        add     sums, sums, #32
        add     channel, channel, #16
        subs    channels, channels, #8
        b.ne    1b

        ldp     x23, x24, [sp, #32]
        ldp     x21, x22, [sp, #16]
        ldp     x19, x20, [sp], #48
        .cfi_def_cfa_offset 0
        restored x19, x20, x21, x22, x23, x24
        ret
endfunc n8_depthwise_s16_s32_neon
