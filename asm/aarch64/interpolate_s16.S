// SPDX-License-Identifier: Apache-2.0
//
// u = clamp(in[i], in_lo, in_hi) - in_lo;  t, d = lines[u >> shift]
// v = clamp(t + floor(d * (u mod 2^shift) / 2^shift + 1/2), -2^15, 2^15 - 1)
// out[i] = clamp(floor(v / 2^fraction + 1/2), lo, hi)                                        (26)
//
//   void n8_interpolate_s16_neon(const struct n8_interpolate_args *args);
//
// Eight values at a time. There is no instruction that loads from eight places, so each line is
// loaded by itself, and the lines are then put together. What is left is eight values again, which
// end with the last and were loaded first, as `out` may be `in`. Fewer than eight go one by one,
// with zeros beside them, whose lines are loaded as well.
//
// Bounds: u fits 16 bits, unsigned. u << (15 - shift) without the bits from 15 on is the share of
//   d in 2^15ths, by which sqrdmulh multiplies it and rounds. v / 2^8 + 1/2 fits 16 bits.
// Registers: x0-x14, v0-v7, v16-v25, see below.
// Stack: none. Reads and writes exactly `count` values.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, in, left, lines
ptr     .req x13

        registers v, 0, in_lo, in_hi, to_line, to_share, to_out, out_lo, out_hi
        // to_line: -shift; to_share: 15 - shift; to_out: -fraction

        // v16, eight values, to those of v17.
.macro  interpolate8
        smax    v16.8h, v16.8h, in_lo.8h
        smin    v16.8h, v16.8h, in_hi.8h
        sub     v16.8h, v16.8h, in_lo.8h
        ushl    v17.8h, v16.8h, to_line.8h
        ushl    v16.8h, v16.8h, to_share.8h
        umov    w5, v17.h[0]
        umov    w6, v17.h[1]
        umov    w7, v17.h[2]
        umov    w8, v17.h[3]
        umov    w9, v17.h[4]
        umov    w10, v17.h[5]
        umov    w11, v17.h[6]
        umov    w12, v17.h[7]
        ldr     s18, [lines, w5, uxtw #2]
        ldr     s19, [lines, w6, uxtw #2]
        ldr     s20, [lines, w7, uxtw #2]
        ldr     s21, [lines, w8, uxtw #2]
        ldr     s22, [lines, w9, uxtw #2]
        ldr     s23, [lines, w10, uxtw #2]
        ldr     s24, [lines, w11, uxtw #2]
        ldr     s25, [lines, w12, uxtw #2]
        bic     v16.8h, #0x80, lsl #8
        zip1    v18.8h, v18.8h, v19.8h          // t0 t1 d0 d1
        zip1    v20.8h, v20.8h, v21.8h
        zip1    v22.8h, v22.8h, v23.8h
        zip1    v24.8h, v24.8h, v25.8h
        zip1    v18.4s, v18.4s, v20.4s          // t0 t1 t2 t3 d0 ...
        zip1    v22.4s, v22.4s, v24.4s
        couple  zip, v17.2d, v18.2d, v18.2d, v22.2d
        sqrdmulh v18.8h, v18.8h, v16.8h
        sqadd   v17.8h, v17.8h, v18.8h
        srshl   v17.8h, v17.8h, to_out.8h
        smax    v17.8h, v17.8h, out_lo.8h
        smin    v17.8h, v17.8h, out_hi.8h
.endm

func    n8_interpolate_s16_neon
        ldp     w5, w6, [args, #N8_OFF_IP_IN_LO]
        ldp     w7, w8, [args, #N8_OFF_IP_SHIFT]
        ldp     w9, w10, [args, #N8_OFF_IP_LO]
        dup     out_lo.8h, w9
        dup     out_hi.8h, w10
        dup     in_lo.8h, w5
        dup     in_hi.8h, w6
        neg     w5, w7
        dup     to_line.8h, w5
        add     w5, w5, #15
        dup     to_share.8h, w5
        neg     w8, w8
        dup     to_out.8h, w8
        ldp     out, in, [args, #N8_OFF_IP_OUT]
        ldp     left, lines, [args, #N8_OFF_IP_COUNT]
        subs    left, left, #8
        b.lo    2f
        lsl     ptr, left, #1
        ldr     q7, [in, ptr]

1:      ldr     q16, [in], #16
        interpolate8
        str     q17, [out], #16
        subs    left, left, #8
        b.hs    1b
        adds    left, left, #8
        b.eq    4f
        mov     v16.16b, v7.16b
        interpolate8
        add     out, out, left, lsl #1
        str     q17, [out, #-16]
        ret

2:      adds    left, left, #8
        b.eq    4f
3:      ldr     h16, [in], #2
        interpolate8
        str     h17, [out], #2
        subs    left, left, #1
        b.ne    3b
4:      ret
endfunc n8_interpolate_s16_neon
