// SPDX-License-Identifier: Apache-2.0
//
// Weights of eight channels at two rows of the planes of Winograd F(4,3)                 (13)
//
//   void n8_winograd_weights_s8_neon(int16_t *out, size_t plane, const int8_t *in, size_t depth,
//                                    size_t width, size_t pair);
//
// The two points of the three columns first, then the six points of both rows side by side. The
// Cortex-A53 stores 64 bits beside a vector operation: planes 5 to 11 of a channel of the input
// are stored beside the first operations of the next one.
// Bounds: |U| <= 128 * 144.
// Registers: x0 what is next; x1 plane; x2 in; x3 depth; x4 width; x5 pair; x6, x7 where the halves
//   of the next plane go; v0-v7 and v15 the taps, then planes 0 to 4; v8-v14 planes 5 to 11;
//   v16-v18 and v19-v21 the rows; v22-v24 what is between; v28-v31 factors.
// Stack: d8 to d15. runtime/conv proves what kernel.h demands.
#include "asm.h"

        registers x, 0, next, plane, in, depth, width, pair, low, high
        registers v, 28, six_s8, minus4, six, four

.macro  lower   value
        st1     {v\value\().8b}, [low], plane
.endm

.macro  upper   value
        st1     {v\value\().d}[1], [high], plane
.endm

        // An operation, and half of a plane from the `at`-th half on, of which v8 has the first.
.macro  both    op, operands:vararg
        \op     \operands
    .irp    value, 8, 9, 10, 11, 12, 13, 14
      .if   n8_at == 2 * \value
        lower   \value
      .elseif n8_at == 2 * \value + 1
        upper   \value
      .endif
    .endr
        .set    n8_at, n8_at + 1
.endm

        // At the points 1 and -1: -4 (g0 + g2) -+ 4 g1.
.macro  ones
        both    saddl, v16.8h, v0.8b, v6.8b
        both    saddl, v17.8h, v1.8b, v7.8b
        both    saddl, v18.8h, v2.8b, v15.8b
        both    sshll, v22.8h, v3.8b, #2
        both    mul, v16.8h, v16.8h, minus4.8h
        both    mul, v17.8h, v17.8h, minus4.8h
        both    mul, v18.8h, v18.8h, minus4.8h
        both    sshll, v23.8h, v4.8b, #2
        both    sshll, v24.8h, v5.8b, #2
        both    add, v19.8h, v16.8h, v22.8h
        both    sub, v16.8h, v16.8h, v22.8h
        both    add, v20.8h, v17.8h, v23.8h
        both    sub, v17.8h, v17.8h, v23.8h
        both    add, v21.8h, v18.8h, v24.8h
        sub     v18.8h, v18.8h, v24.8h
.endm

        // At infinity and 0: 6 g2 and 6 g0.
.macro  ends
        both    smull, v16.8h, v6.8b, six_s8.8b
        both    smull, v18.8h, v15.8b, six_s8.8b
        both    smull, v19.8h, v0.8b, six_s8.8b
        both    smull, v21.8h, v2.8b, six_s8.8b
        both    smull, v17.8h, v7.8b, six_s8.8b
        both    smull, v20.8h, v1.8b, six_s8.8b
    .rept   8
        both
    .endr
.endm

        // At 2 and -2: g0 + 4 g2 +- 2 g1.
.macro  twos
        both    sshll, v16.8h, v6.8b, #2
        both    sshll, v17.8h, v7.8b, #2
        both    sshll, v18.8h, v15.8b, #2
        both    saddw, v16.8h, v16.8h, v0.8b
        both    saddw, v17.8h, v17.8h, v1.8b
        both    saddw, v18.8h, v18.8h, v2.8b
        both    sshll, v22.8h, v3.8b, #1
        both    sshll, v23.8h, v4.8b, #1
        both    sshll, v24.8h, v5.8b, #1
        both    sub, v19.8h, v16.8h, v22.8h
        both    add, v16.8h, v16.8h, v22.8h
        both    sub, v20.8h, v17.8h, v23.8h
        both    add, v17.8h, v17.8h, v23.8h
        both    sub, v21.8h, v18.8h, v24.8h
        add     v18.8h, v18.8h, v24.8h
.endm

func    n8_winograd_weights_s8_neon
        enter   64, D8_TO_D15
        lsl     plane, plane, #1
        lsl     width, width, #1
        add     low, next, plane
        add     low, low, plane, lsl #2
        add     high, low, #8
        movi    six_s8.8b, #6
        mvni    minus4.8h, #3
        movi    six.8h, #6
        movi    four.8h, #4

        // All channels of the input. Before the first one, planes are stored that nothing is known
        // of, to where the right ones follow.
.Lnext:
        ldr     d0, [in]
        ldr     d6, [in, #48]
        ldr     d1, [in, #8]
        ldr     d7, [in, #56]
        ldr     d2, [in, #16]
        ldr     d15, [in, #64]
        ldr     d3, [in, #24]
        ldr     d4, [in, #32]
        ldr     d5, [in, #40]
        cmp     pair, #1
        add     in, in, #72
        .set    n8_at, 16
        b.eq    .Lends
        b.hi    .Ltwos
        ones
        b       .Lrows
.Lends: .set    n8_at, 16
        ends
        b       .Lrows
.Ltwos: .set    n8_at, 16
        twos
.Lrows:
        mov     low, next
        add     v22.8h, v16.8h, v18.8h
        add     high, next, #8
        add     v23.8h, v19.8h, v21.8h
        mul     v0.8h, v18.8h, six.8h
        mul     v9.8h, v21.8h, six.8h
        mul     v22.8h, v22.8h, minus4.8h
        mul     v23.8h, v23.8h, minus4.8h
        shl     v2.8h, v17.8h, #2
        shl     v3.8h, v20.8h, #2
        mul     v1.8h, v16.8h, six.8h
        sub     v4.8h, v22.8h, v2.8h
        add     next, next, width
        add     v5.8h, v22.8h, v2.8h
        subs    depth, depth, #1
        mla     v16.8h, v18.8h, four.8h
        mul     v10.8h, v19.8h, six.8h
        lower   4
        sub     v6.8h, v23.8h, v3.8h
        upper   4
        mla     v19.8h, v21.8h, four.8h
        lower   5
        shl     v17.8h, v17.8h, #1
        upper   5
        shl     v20.8h, v20.8h, #1
        lower   0
        add     v8.8h, v23.8h, v3.8h
        upper   0
        add     v11.8h, v16.8h, v17.8h
        lower   1
        sub     v12.8h, v16.8h, v17.8h
        upper   1
        add     v13.8h, v19.8h, v20.8h
        lower   6
        sub     v14.8h, v19.8h, v20.8h
        upper   6
        b.ne    .Lnext

        .set    n8_at, 16
    .rept   14
        both
    .endr
        leave   64, D8_TO_D15
        ret
endfunc n8_winograd_weights_s8_neon
