// SPDX-License-Identifier: Apache-2.0
//
// sums[0] = max in[i];  sums[1] = sum of powers[255 - sums[0] + in[i]]                        (30)
//
//   void n8_powers_s8_neon(int64_t *sums, const int8_t *in, size_t count,
//                          const int32_t *powers);
//
// The maximum in vectors. No vector holds 256 entries of 32 bits: values are looked up one by one,
// four of them from a register.
//
// Bounds: exactly `count` values are read, 1 at least; entries are 0 .. 2^30, so that two of them
//   add up in 32 bits.
// Registers: r0-r3 the arguments, then `powers` where the largest value is 0; r4, r5 the sum, r6-r9
//   entries, r12 values left, lr the next ones or four values; q0-q1 values and maxima.
// Stack: 28 bytes, what it preserves.
#include "asm.h"

        registers r, 0, sums, in, count, powers, low, high, largest
left    .req r12
from    .req lr
values  .req lr

func    n8_powers_s8_neon
        save    r4, r5, r6, r7, r8, r9, lr
        mov     from, in
        subs    left, count, #16
        blo     2f

        // Sixteen at a time, and the last sixteen, of which some were there before.
        add     r7, in, left
        vld1.8  {d0-d1}, [r7]
        cmp     left, #0
        beq     1f
0:      vld1.8  {d2-d3}, [from]!
        subs    left, left, #16
        vmax.s8 q0, q0, q1
        bhi     0b
1:      vmax.s8 d0, d0, d1
        vpmax.s8 d0, d0, d0
        vpmax.s8 d0, d0, d0
        vpmax.s8 d0, d0, d0
        vmov.s8 largest, d0[0]
        b       4f
2:      mvn     largest, #127
        mov     left, count
3:      ldrsb   r7, [from], #1
        cmp     r7, largest
        movgt   largest, r7
        subs    left, left, #1
        bne     3b

4:      asr     r7, largest, #31
        strd    r6, r7, [sums]
        sub     powers, powers, largest, lsl #2
        add     powers, powers, #1020           // 4 * 255
        mov     low, #0
        mov     high, #0
        subs    left, count, #4
        blo     6f
5:      ldr     values, [in], #4
        sxtb    r6, values
        sxtb    r7, values, ror #8
        sxtb    r8, values, ror #16
        asr     r9, values, #24
        ldr     r6, [powers, r6, lsl #2]
        ldr     r7, [powers, r7, lsl #2]
        ldr     r8, [powers, r8, lsl #2]
        ldr     r9, [powers, r9, lsl #2]
        add     r6, r6, r7
        adds    low, low, r6
        adc     high, high, #0
        add     r8, r8, r9
        adds    low, low, r8
        adc     high, high, #0
        subs    left, left, #4
        bhs     5b
6:      ands    left, count, #3
        beq     8f
7:      ldrsb   r6, [in], #1
        ldr     r6, [powers, r6, lsl #2]
        adds    low, low, r6
        adc     high, high, #0
        subs    left, left, #1
        bne     7b
8:      strd    low, high, [sums, #8]
        restore r4, r5, r6, r7, r8, r9, lr
        bx      lr
endfunc n8_powers_s8_neon
