// SPDX-License-Identifier: Apache-2.0
//
// Weights of eight channels at two rows of the planes of Winograd F(4,3)                 (13)
//
//   void n8_winograd_weights_s8_neon(int16_t *out, size_t plane, const int8_t *in, size_t depth,
//                                    size_t width, size_t pair);
//
// The two points of the three columns first, then the six points of both rows side by side. The
// Cortex-A53 stores 64 bits beside a vector operation, and loads two times 64 in a cycle, of which
// half comes by a general register: planes 5 to 11 of a channel of the input are stored beside the
// first operations of the next one, whose taps are loaded before.
// Bounds: |U| <= 128 * 49.
// Registers: x0 what is next; x1 plane; x2 in; x3 depth; x4 width; x5 pair; x6, x7 where the halves
//   of the next plane go; x8-x12 taps on their way; v0-v5 the taps; v22-v27 planes 0 to 5; v8-v13
//   planes 6 to 11; v16-v18 and v19-v21 the rows; v6, v7, v14 what is between; v15, v28 factors.
// Stack: d8 to d15. runtime/conv proves what kernel.h demands.
#include "asm.h"

        registers x, 0, next, plane, in, depth, width, pair, low, high
        registers v, 0, g0, g2, g02, g1, g22, g12
        // g0: taps 0 and 1 of the first row, g02: tap 2
        registers v, 28, six
factors .req v15                // 6 and 4

.macro  lower   value
        st1     {v\value\().8b}, [low], plane
.endm

.macro  upper   value
        st1     {v\value\().d}[1], [high], plane
.endm

        // An operation, and half of a plane: the `at`-th of all 24.
.macro  both    op, operands:vararg
        \op     \operands
    .irp    value, 22, 23, 24, 25, 26, 27
        half    \value, 2 * (\value - 22)
    .endr
    .irp    value, 8, 9, 10, 11, 12, 13
        half    \value, 2 * (\value - 2)
    .endr
        .set    n8_at, n8_at + 1
.endm

.macro  half    value, at
    .if     n8_at == \at
        lower   \value
    .elseif n8_at == \at + 1
        upper   \value
    .endif
.endm

        // At the points 1 and -1: g0 + g2 +- g1.
.macro  ones
        both    saddl, v18.8h, g02.8b, g22.8b
        both    saddl, v16.8h, g0.8b, g2.8b
        both    saddl2, v17.8h, g0.16b, g2.16b
        both    ssubw, v21.8h, v18.8h, g12.8b
        both    saddw, v18.8h, v18.8h, g12.8b
        both    ssubw, v19.8h, v16.8h, g1.8b
        both    saddw, v16.8h, v16.8h, g1.8b
        both    ssubw2, v20.8h, v17.8h, g1.16b
        both    saddw2, v17.8h, v17.8h, g1.16b
        both
        subs    depth, depth, #1
        both
        add     x12, in, #72
        both
.endm

        // At infinity and 0: 6 g2 and 6 g0.
.macro  ends
        both    smull, v18.8h, g22.8b, six.8b
        both    smull, v21.8h, g02.8b, six.8b
        both    smull, v19.8h, g0.8b, six.8b
        both    smull, v16.8h, g2.8b, six.8b
        both    smull2, v17.8h, g2.16b, six.16b
        both    smull2, v20.8h, g0.16b, six.16b
        both
        subs    depth, depth, #1
        both
        add     x12, in, #72
    .rept   4
        both
    .endr
.endm

        // At 2 and -2: g0 + 4 g2 +- 2 g1.
.macro  twos
        both    sshll2, v17.8h, g2.16b, #2
        both    sshll, v18.8h, g22.8b, #2
        both    sshll, v14.8h, g12.8b, #1
        both    sshll, v16.8h, g2.8b, #2
        both    sshll, v6.8h, g1.8b, #1
        both    saddw, v18.8h, v18.8h, g02.8b
        both    saddw2, v17.8h, v17.8h, g0.16b
        both    saddw, v16.8h, v16.8h, g0.8b
        both    sshll2, v7.8h, g1.16b, #1
        both    sub, v21.8h, v18.8h, v14.8h
        both    add, v18.8h, v18.8h, v14.8h
        both    sub, v19.8h, v16.8h, v6.8h
        both    add, v16.8h, v16.8h, v6.8h
        sub     v20.8h, v17.8h, v7.8h
        subs    depth, depth, #1
        add     v17.8h, v17.8h, v7.8h
        add     x12, in, #72
.endm

func    n8_winograd_weights_s8_neon
        enter   64, D8_TO_D15
        lsl     plane, plane, #1
        lsl     width, width, #1
        add     low, next, plane
        add     low, low, plane, lsl #2
        add     high, low, #8
        movi    six.16b, #6
        mov     w8, #6
        mov     factors.h[0], w8
        mov     w8, #4
        mov     factors.h[1], w8
        ldr     x8, [in, #8]
        ldr     x9, [in, #56]
        ldr     x10, [in, #32]
        ldr     d0, [in]
        ldr     d1, [in, #48]
        ldr     d3, [in, #24]
        ldr     d2, [in, #16]
        ldr     d4, [in, #64]
        ldr     d5, [in, #40]
        mov     g0.d[1], x8
        mov     g2.d[1], x9
        mov     g1.d[1], x10
        add     in, in, #72
        sub     depth, depth, #1

        // All channels of the input. Before the first one, planes are stored that nothing is known
        // of, to where the right ones follow; after the last one it is loaded once more.
.Lnext: .set    n8_at, 10
        both
        tbnz    pair, #1, .Ltwos
        both
        tbnz    pair, #0, .Lends
        ones
        b       .Lrows
.Lends: .set    n8_at, 12
        ends
        b       .Lrows
.Ltwos: .set    n8_at, 11
        twos
.Lrows: .set    n8_at, 0
        add     v7.8h, v19.8h, v21.8h
        mov     low, next
        add     v6.8h, v16.8h, v18.8h
        add     high, next, #8
        mul     v24.8h, v18.8h, factors.h[0]
        ldr     x11, [in, #40]
        mul     v25.8h, v16.8h, factors.h[0]
        ldr     x8, [in, #8]
        add     v22.8h, v6.8h, v17.8h
        ldr     x9, [in, #56]
        sub     v23.8h, v6.8h, v17.8h
        ldr     x10, [in, #32]
        ldr     d0, [in]
        add     next, next, width
        both    add, v26.8h, v7.8h, v20.8h
        both    sub, v27.8h, v7.8h, v20.8h
        ldr     d1, [in, #48]
        fmov    d5, x11
        both    mla, v16.8h, v18.8h, factors.h[1]
        both    mul, v8.8h, v21.8h, factors.h[0]
        ldr     d3, [in, #24]
        mov     g0.d[1], x8
        both    mul, v9.8h, v19.8h, factors.h[0]
        both    mla, v19.8h, v21.8h, factors.h[1]
        both    add, v17.8h, v17.8h, v17.8h
        ldr     d2, [in, #16]
        mov     g2.d[1], x9
        both    add, v20.8h, v20.8h, v20.8h
        both    add, v10.8h, v16.8h, v17.8h
        ldr     d4, [in, #64]
        mov     g1.d[1], x10
        both    sub, v11.8h, v16.8h, v17.8h
        add     v12.8h, v19.8h, v20.8h
        csel    in, x12, in, hi
        sub     v13.8h, v19.8h, v20.8h
        b.hs    .Lnext

    .rept   14
        both
    .endr
        leave   64, D8_TO_D15
        ret
endfunc n8_winograd_weights_s8_neon
