// SPDX-License-Identifier: Apache-2.0
//
// Pointwise operations of int8:
//
//   add         v = fadd(fmul((float)(a[i] - a_zero_point), a_scale),
//                        fmul((float)(b[i] - b_zero_point), b_scale))                          (6)
//   multiply    v = fmul((float)((a[i] - a_zero_point) * (b[i] - b_zero_point)), a_scale), or
//                   scales[i] in its place                                                    (16)
//   requantize  v = fmul((float)(a[i] - a_zero_point), a_scale)
//               out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)
//
//   void n8_..._s8_neon(const struct n8_pointwise_args *args);
//
// Bounds: a difference of bytes fits int16, and int32 to float is exact for it; so it is for the
//   product of two, which is below 2^17. Reads and writes exactly `count` bytes.
// Registers: x0 the arguments, x1-x3 out and the operands, x4 bytes left, less 16 of this round;
//   x5 scratch; x8 the scales, or 0. v0-v2 zero point, lo, hi; v3 scale of a, v4 of b; v5 slope, w6 its bits; v6 zero
//   point of a, v7 of b; v20 bytes of a, v21 of b; v16-v19 results; v22-v31 scratch.
// Stack: none.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, first, second, left, ptr
        registers w, 6, slope, one
scales  .req x8

        // Operand `v` gets the left % 16 bytes at `from`, from the last on.
.macro  load_last v, from
        movi    v22.16b, #0
        add     ptr, \from, left
        tbz     left, #0, 7f
        ldr     b22, [ptr, #-1]!
7:      tbz     left, #1, 7f
        ext     v22.16b, v22.16b, v22.16b, #14
        sub     ptr, ptr, #2
        ld1     {v22.h}[0], [ptr]
7:      tbz     left, #2, 7f
        ext     v22.16b, v22.16b, v22.16b, #12
        sub     ptr, ptr, #4
        ld1     {v22.s}[0], [ptr]
7:      tbz     left, #3, 7f
        ext     v22.16b, v22.16b, v22.16b, #8
        sub     ptr, ptr, #8
        ld1     {v22.d}[0], [ptr]
7:      mov     \v\().16b, v22.16b
.endm

        // Eight bytes less their zero point, 9 bits, as floats: low and high.
.macro  floats8 half, part, from, low, high, zero_point
        ssubl\part \low\().8h, \from\().\half, \zero_point\().\half
        sxtl2   \high\().4s, \low\().8h
        sxtl    \low\().4s, \low\().4h
        scvtf   \high\().4s, \high\().4s
        scvtf   \low\().4s, \low\().4s
.endm

        // Sixteen floats times a scale.
.macro  scale   a, b, c, d, by
        each    fmul, \by, \a\().4s, \b\().4s, \c\().4s, \d\().4s
.endm

        // The operations, from v20 and v21 to sixteen floats in v16-v19.
.macro  requantize
        floats8 8b, , v20, v16, v17, v6
        floats8 16b, 2, v20, v18, v19, v6
        scale   v16, v17, v18, v19, v3.s[0]
.endm

.macro  sum
        floats8 8b, , v20, v16, v17, v6
        floats8 16b, 2, v20, v18, v19, v6
        floats8 8b, , v21, v24, v25, v7
        floats8 16b, 2, v21, v26, v27, v7
        scale   v16, v17, v18, v19, v3.s[0]
        scale   v24, v25, v26, v27, v4.s[0]
        on16    fadd, v24.4s, v25.4s, v26.4s, v27.4s
.endm

.macro  product
        ssubl   v24.8h, v20.8b, v6.8b
        ssubl2  v25.8h, v20.16b, v6.16b
        ssubl   v26.8h, v21.8b, v7.8b
        ssubl2  v27.8h, v21.16b, v7.16b
        smull   v16.4s, v24.4h, v26.4h
        smull2  v17.4s, v24.8h, v26.8h
        smull   v18.4s, v25.4h, v27.4h
        smull2  v19.4s, v25.8h, v27.8h
        in_place scvtf, v16.4s, v17.4s, v18.4s, v19.4s
        cbnz    scales, 7f
        scale   v16, v17, v18, v19, v3.s[0]
        b       8f
7:      ld1     {v24.4s-v27.4s}, [scales], #64
        on16    fmul, v24.4s, v25.4s, v26.4s, v27.4s
8:
.endm

.macro  pointwise name, operands, operation
func    n8_\name
        load_limits v0, v1, v2, ptr, N8_OFF_PW_ZERO_POINT, N8_OFF_PW_LO, N8_OFF_PW_HI
        spread  v6.16b, N8_OFF_PW_A_ZERO_POINT, ptr
        ldr     s3, [args, #N8_OFF_PW_A_SCALE]
        ldr     slope, [args, #N8_OFF_PW_SLOPE]
        mov     one, #0x3f800000
        dup     v5.4s, slope
        ldp     out, first, [args, #N8_OFF_PW_OUT]
    .if \operands == 2
        spread  v7.16b, N8_OFF_PW_B_ZERO_POINT, ptr
        ldr     s4, [args, #N8_OFF_PW_B_SCALE]
        ldr     second, [args, #N8_OFF_PW_B]
        ldr     scales, [args, #N8_OFF_PW_SCALES]
    .endif
        ldr     left, [args, #N8_OFF_PW_COUNT]
        subs    left, left, #16
        b.lo    3f

1:      ldr     q20, [first], #16
    .if \operands == 2
        ldr     q21, [second], #16
    .endif
2:      \operation
        cmp     slope, one
        b.eq    5f
        leaky   v5, v22, v23, v16, v17, v18, v19
5:      round16 v16, v17, v18, v19, v0, v1, v2
        tbnz    left, #63, 4f
        str     q16, [out], #16
        subs    left, left, #16
        b.hs    1b

        // The last 1 to 15 bytes go through the same steps; what lies after them is not touched.
3:      adds    left, left, #16
        b.eq    6f
        load_last v20, first
    .if \operands == 2
        load_last v21, second
    .endif
        sub     left, left, #16
        b       2b
4:      store_last out, left
6:      ret
endfunc n8_\name
.endm

pointwise add_s8_neon, 2, sum
pointwise multiply_s8_neon, 2, product
pointwise requantize_s8_neon, 1, requantize
