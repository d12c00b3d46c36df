// SPDX-License-Identifier: Apache-2.0
//
// sums[0] = max in[i];  sums[1] = sum of powers[255 - sums[0] + in[i]]                        (30)
//
//   void n8_powers_s8_neon(int64_t *sums, const int8_t *in, size_t count,
//                          const int32_t *powers);
//
// The maximum in vectors. No vector holds 256 entries of 32 bits: values are looked up one by one,
// eight of them from a register. What the last four give is added in the next round, as a core that
// issues in order would wait for it.
//
// Bounds: exactly `count` values are read, 1 at least; entries are not negative, and a sum of 64
//   bits holds 2^33 of them.
// Registers: x0-x3 the arguments, then `powers` where the largest value is 0; x4 values left, x5
//   the next ones, x6 eight values, x7-x14 their entries, x15-x16 sums; v0-v1 values and maxima.
// Stack: none.
#include "asm.h"

        registers x, 0, sums, in, count, powers, left, from, values, largest
sum0    .req x15
sum1    .req x16

func    n8_powers_s8_neon
        mov     from, in
        subs    left, count, #16
        b.lo    2f

        // Sixteen at a time, and the last sixteen, of which some were there before.
        ldr     q0, [in, left]
        cbz     left, 1f
0:      ldr     q1, [from], #16
        subs    left, left, #16
        smax    v0.16b, v0.16b, v1.16b
        b.hi    0b
1:      smaxv   b0, v0.16b
        smov    largest, v0.b[0]
        b       4f
2:      mov     largest, #-128
        mov     left, count
3:      ldrsb   x8, [from], #1
        subs    left, left, #1
        cmp     x8, largest
        csel    largest, x8, largest, gt
        cbnz    left, 3b

4:      str     largest, [sums]
        sub     powers, powers, largest, lsl #2
        add     powers, powers, #1020           // 4 * 255
        mov     sum0, #0
        mov     sum1, #0
        subs    left, count, #8
        b.lo    6f
        mov     x11, #0
        mov     x12, #0
        mov     x13, #0
        mov     x14, #0
5:      ldr     values, [in], #8
        add     sum0, sum0, x11
        add     sum1, sum1, x12
        add     sum0, sum0, x13
        add     sum1, sum1, x14
        sbfx    x7, values, #0, #8
        sbfx    x8, values, #8, #8
        ldr     w7, [powers, x7, lsl #2]
        sbfx    x9, values, #16, #8
        ldr     w8, [powers, x8, lsl #2]
        sbfx    x10, values, #24, #8
        ldr     w9, [powers, x9, lsl #2]
        sbfx    x11, values, #32, #8
        ldr     w10, [powers, x10, lsl #2]
        add     sum0, sum0, x7
        ldr     w11, [powers, x11, lsl #2]
        sbfx    x12, values, #40, #8
        add     sum1, sum1, x8
        ldr     w12, [powers, x12, lsl #2]
        sbfx    x13, values, #48, #8
        add     sum0, sum0, x9
        ldr     w13, [powers, x13, lsl #2]
        asr     x14, values, #56
        add     sum1, sum1, x10
        ldr     w14, [powers, x14, lsl #2]
        subs    left, left, #8
        b.hs    5b
        add     sum0, sum0, x11
        add     sum1, sum1, x12
        add     sum0, sum0, x13
        add     sum1, sum1, x14
6:      ands    left, count, #7
        b.eq    8f
7:      ldrsb   x7, [in], #1
        ldr     w7, [powers, x7, lsl #2]
        add     sum0, sum0, x7
        subs    left, left, #1
        b.ne    7b
8:      add     sum0, sum0, sum1
        str     sum0, [sums, #8]
        ret
endfunc n8_powers_s8_neon
