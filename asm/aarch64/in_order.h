// SPDX-License-Identifier: Apache-2.0
//
// Products of bytes ordered for the Cortex-A53. No vector operation begins beside a load to a vector
// register there, but an insertion from a general one does. So of 16 bytes the high half is loaded to
// a general register, beside a product, and inserted beside the low half of what comes two later.
// Products go through v8-v11.
#ifndef N8_IN_ORDER_H
#define N8_IN_ORDER_H

// 16 bytes at ptr: the low half in q, the high half on its way in `high`, which has had that of r.
.macro  load    q, ptr, r, high
    .ifnb \q
        ldr     \q, [\ptr], #16
        .ifnb \r
        ins     \r\().d[1], \high
        .endif
    .endif
.endm

.macro  load_high q, ptr, r, high
    .ifnb \q
        ldr     \high, [\ptr, #-8]
    .endif
.endm

// Products of a pixel and four channels, and loads before them.
.macro  products op, size, a, b0, b1, b2, b3, l0, l1, l2, l3
        load    \l0
        \op     v8.8h, \a\().\size, \b0\().\size
        load_high \l0
        load    \l1
        \op     v9.8h, \a\().\size, \b1\().\size
        load_high \l1
        load    \l2
        \op     v10.8h, \a\().\size, \b2\().\size
        load_high \l2
        load    \l3
        \op     v11.8h, \a\().\size, \b3\().\size
        load_high \l3
.endm

// The first sums of a tile by saddlp, others by sadalp.
.macro  add_up  add, s0, s1, s2, s3, l0, l1, l2, l3
        load    \l0
        \add    \s0\().4s, v8.8h
        load_high \l0
        load    \l1
        \add    \s1\().4s, v9.8h
        load_high \l1
        load    \l2
        \add    \s2\().4s, v10.8h
        load_high \l2
        load    \l3
        \add    \s3\().4s, v11.8h
        load_high \l3
.endm

// Operands of `load`, as one of a macro's.
#define LOAD(...)       QUOTE(__VA_ARGS__)
#define QUOTE(...)      #__VA_ARGS__

#endif // N8_IN_ORDER_H
