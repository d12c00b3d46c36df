// SPDX-License-Identifier: Apache-2.0
//
// The two halves of (31), of int16 values:
//
//   sums[0] = sum of in[i];  sums[1] = sum of in[i] * in[i]
//
//   void n8_sums_s16_neon(int64_t *sums, const int16_t *in, size_t count);
//
//   v = fadd(fmul(fmul((float)(in[i] * factor - shift), rate), gain[i]), offset[i])
//   out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi), NaN as 0
//
//   void n8_normalize_s16_neon(const struct n8_normalize_args *args);
#include "asm.h"
#include "kernel.h"

// Sixteen values at a time, then eight, then single ones in vectors of zeros.
//
// Bounds: 65536 values are below 2^31 in 32 bits of a sum; two squares are below 2^32. Reads
//   exactly `count` values.
// Registers: x0-x2 the arguments; v0, v1 values, v2, v3 sums of two squares, v4, v5 sums of values,
//   v6, v7 of squares.
// Stack: none.
        registers x, 0, sums, in, count

.macro  add_up v, squares, of_values, of_squares
        smull   \squares\().4s, \v\().4h, \v\().4h
        sadalp  \of_values\().4s, \v\().8h
        smlal2  \squares\().4s, \v\().8h, \v\().8h
        uadalp  \of_squares\().2d, \squares\().4s
.endm

func    n8_sums_s16_neon
        fill    movi, #0, v4.16b, v5.16b, v6.16b, v7.16b
        subs    count, count, #16
        b.lo    2f
1:      ldp     q0, q1, [in], #32
        subs    count, count, #16
        smull   v2.4s, v0.4h, v0.4h
        smull   v3.4s, v1.4h, v1.4h
        sadalp  v4.4s, v0.8h
        sadalp  v5.4s, v1.8h
        smlal2  v2.4s, v0.8h, v0.8h
        smlal2  v3.4s, v1.8h, v1.8h
        uadalp  v6.2d, v2.4s
        uadalp  v7.2d, v3.4s
        b.hs    1b
2:      tbz     count, #3, 3f
        ldr     q0, [in], #16
        add_up  v0, v2, v4, v6
3:      ands    count, count, #7
        b.eq    5f
4:      ldr     h0, [in], #2
        subs    count, count, #1
        add_up  v0, v2, v5, v7
        b.ne    4b
5:      add     v4.4s, v4.4s, v5.4s
        add     v6.2d, v6.2d, v7.2d
        saddlv  d4, v4.4s
        addp    d6, v6.2d
        stp     d4, d6, [sums]
        ret
endfunc n8_sums_s16_neon

        .unreq  in
        .unreq  count

// Sixteen values at a time; what is left is sixteen again, which end with the last. Fewer than
// sixteen go four by four, then one by one.
//
// Bounds: the caller has proved that in * factor and what is left of it fit int32; floats may become
//   infinite or NaN; round8_s16 of asm.h. Reads and writes exactly `count` values.
// Registers: below; v0-v2 the limits, v3 rate, slope, factor; v4 shift; v5 slopes; v6, v7 scratch;
//   v16-v19 values, v20-v23 gains, v24-v27 offsets.
// Stack: none.
        registers x, 0, args, out, in, gain, offset, left, back
slope   .req w7
one     .req w8

        // From int32 values to floats that are not rounded yet, but for gains and offsets.
.macro  centre  registers:vararg
        each    mul, v3.s[2], \registers
        each    sub, v4.4s, \registers
    in_place scvtf, \registers
        each    fmul, v3.s[0], \registers
.endm

func    n8_normalize_s16_neon
        ldr     w1, [args, #N8_OFF_NO_ZERO_POINT]
        ldp     w2, w3, [args, #N8_OFF_NO_LO]
        set_limits_s16 w1, w2, w3
        ldr     w1, [args, #N8_OFF_NO_SHIFT]
        dup     v4.4s, w1
        ldr     slope, [args, #N8_OFF_NO_SLOPE]
        dup     v5.4s, slope
        add     x1, args, #N8_OFF_NO_RATE       // the slope and the factor come after it
        ld1     {v3.2s}, [x1]
        ldr     w1, [args, #N8_OFF_NO_FACTOR]
        ins     v3.s[2], w1
        ldp     out, in, [args, #N8_OFF_NO_OUT]
        ldp     gain, offset, [args, #N8_OFF_NO_GAIN]
        ldr     left, [args, #N8_OFF_NO_COUNT]
        mov     one, #0x3f800000
        subs    left, left, #16
        b.lo    4f

1:      ldp     q16, q18, [in], #32
        ldp     q20, q21, [gain], #32
        ldp     q22, q23, [gain], #32
        sxtl2   v17.4s, v16.8h
        sxtl2   v19.4s, v18.8h
        sxtl    v16.4s, v16.4h
        sxtl    v18.4s, v18.4h
        ldp     q24, q25, [offset], #32
        ldp     q26, q27, [offset], #32
        centre  v16.4s, v17.4s, v18.4s, v19.4s
        on16    fmul, v20.4s, v21.4s, v22.4s, v23.4s
        on16    fadd, v24.4s, v25.4s, v26.4s, v27.4s
        cmp     slope, one
        b.eq    2f
        leaky   v5, v6, v7, v16, v17, v18, v19
2:      in_place fcvtns, v16.4s, v17.4s, v18.4s, v19.4s
        each    smax, v0.4s, v16.4s, v17.4s, v18.4s, v19.4s
        each    smin, v1.4s, v16.4s, v17.4s, v18.4s, v19.4s
        uzp1    v16.8h, v16.8h, v17.8h
        uzp1    v18.8h, v18.8h, v19.8h
        add     v16.8h, v16.8h, v2.8h
        add     v18.8h, v18.8h, v2.8h
        stp     q16, q18, [out], #32
        subs    left, left, #16
        b.hs    1b
        adds    back, left, #16
        b.eq    9f
        sub     back, back, #16                 // values, to begin 16 before the end
        add     in, in, back, lsl #1
        add     out, out, back, lsl #1
        add     gain, gain, back, lsl #2
        add     offset, offset, back, lsl #2
        mov     left, #0
        b       1b

4:      adds    left, left, #12
        b.mi    7f
5:      ldr     d16, [in], #8
        ldr     q20, [gain], #16
        ldr     q24, [offset], #16
        sxtl    v16.4s, v16.4h
        centre  v16.4s
        fmul    v16.4s, v16.4s, v20.4s
        fadd    v16.4s, v16.4s, v24.4s
        leaky   v5, v6, v7, v16
        round4_s16 v16
        str     d16, [out], #8
        subs    left, left, #4
        b.pl    5b
7:      adds    left, left, #4
        b.eq    9f
8:      ldr     h16, [in], #2
        ldr     s20, [gain], #4
        ldr     s24, [offset], #4
        sxtl    v16.4s, v16.4h
        centre  v16.4s
        fmul    v16.4s, v16.4s, v20.4s
        fadd    v16.4s, v16.4s, v24.4s
        leaky   v5, v6, v7, v16
        round4_s16 v16
        str     h16, [out], #2
        subs    left, left, #1
        b.ne    8b
9:      ret
endfunc n8_normalize_s16_neon
