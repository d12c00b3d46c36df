// SPDX-License-Identifier: Apache-2.0
//
// u = clamp(in[i], in_lo, in_hi) - in_lo;  t, d = lines[u >> shift]
// v = clamp(t + floor(d * (u mod 2^shift) / 2^shift + 1/2), -2^15, 2^15 - 1)
// out[i] = clamp(floor(v / 2^fraction + 1/2), lo, hi)                                        (26)
//
//   void n8_interpolate_s16_neon(const struct n8_interpolate_args *args);
//
// Eight values at a time, each line loaded by itself. The last ones are eight again, which end with
// the last value and were loaded before anything was stored, as `out` may be `in`. Fewer than eight
// go one by one, with what the registers hold beside them, whose lines are loaded as well.
//
// Bounds: u fits 16 bits, unsigned. u << (15 - shift) without the bits from 15 on is the share of
//   d in 2^15ths, by which vqrdmulh multiplies it and rounds. v / 2^8 + 1/2 fits 16 bits.
// Registers: r0-r9, r12, lr, q0-q3, q8-q15, see below; q14 out_lo, q15 out_hi.
// Stack: 32 bytes, what it preserves. Reads and writes exactly `count` values.
#include "asm.h"

        registers r, 0, args, in, lines, left
        // left: values, less 8 of this round
out     .req r0

        registers q, 0, in_lo, in_hi, to_line, to_share
        // to_line: -shift; to_share: 15 - shift
        registers q, 13, to_out, out_lo, out_hi
        // to_out: -fraction

        // The lines of two values, by number, to half of a register.
.macro  two     d, a, b
        add     \a, lines, \a, lsl #2
        add     \b, lines, \b, lsl #2
        vld1.32 {\d[0]}, [\a]
        vld1.32 {\d[1]}, [\b]
.endm

        // q8, eight values, to those of q9.
.macro  interpolate8
        vmax.s16 q8, q8, in_lo
        vmin.s16 q8, q8, in_hi
        vsub.i16 q8, q8, in_lo
        vshl.u16 q9, q8, to_line
        vshl.u16 q8, q8, to_share
        vmov.u16 r4, d18[0]
        vmov.u16 r5, d18[1]
        vmov.u16 r6, d18[2]
        vmov.u16 r7, d18[3]
        vmov.u16 r8, d19[0]
        vmov.u16 r9, d19[1]
        vmov.u16 r12, d19[2]
        vmov.u16 lr, d19[3]
        two     d20, r4, r5
        two     d21, r6, r7
        two     d22, r8, r9
        two     d23, r12, lr
        vbic.i16 q8, #0x8000
        vuzp.16 q10, q11                        // t, then d
        vqrdmulh.s16 q11, q11, q8
        vqadd.s16 q9, q10, q11
        vrshl.s16 q9, q9, to_out
        vmax.s16 q9, q9, out_lo
        vmin.s16 q9, q9, out_hi
.endm

func    n8_interpolate_s16_neon
        save    r4, r5, r6, r7, r8, r9, r10, lr
        ldr     r4, [args, #N8_OFF_IP_LO]
        ldr     r5, [args, #N8_OFF_IP_HI]
        vdup.16 out_lo, r4
        vdup.16 out_hi, r5
        ldr     r4, [args, #N8_OFF_IP_IN_LO]
        ldr     r5, [args, #N8_OFF_IP_IN_HI]
        ldr     r6, [args, #N8_OFF_IP_SHIFT]
        ldr     r7, [args, #N8_OFF_IP_FRACTION]
        vdup.16 in_lo, r4
        vdup.16 in_hi, r5
        rsb     r5, r6, #0
        vdup.16 to_line, r5
        rsb     r5, r6, #15
        vdup.16 to_share, r5
        rsb     r7, r7, #0
        vdup.16 to_out, r7
        ldr     in, [args, #N8_OFF_IP_IN]
        ldr     left, [args, #N8_OFF_IP_COUNT]
        ldr     lines, [args, #N8_OFF_IP_LINES]
        ldr     out, [args, #N8_OFF_IP_OUT]
        subs    left, left, #8
        blo     2f
        add     r4, in, left, lsl #1
        vld1.16 {d24-d25}, [r4]

1:      vld1.16 {d16-d17}, [in]!
        interpolate8
        subs    left, left, #8
        vst1.16 {d18-d19}, [out]!
        bhs     1b
        adds    left, left, #8
        beq     4f
        vmov    q8, q12
        interpolate8
        add     out, out, left, lsl #1
        sub     out, out, #16
        vst1.16 {d18-d19}, [out]
        b       4f

2:      adds    left, left, #8
        beq     4f
3:      vld1.16 {d16[0]}, [in]!
        interpolate8
        subs    left, left, #1
        vst1.16 {d18[0]}, [out]!
        bne     3b
4:      pop     {r4-r10, pc}
endfunc n8_interpolate_s16_neon
