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
//   x5, x9 scratch; x8 the scales, or 0. v0-v2 zero point, lo, hi; v3 scales of a and b; v5 slope, w6
//   its bits; v6 zero point of a, v7 of b; v20 bytes of a, v21 of b; v16-v19 results; v22-v27 and
//   v29-v31 scratch; v28 1.5 * 2^23.
// Stack: none.
#include "asm.h"
#include "kernel.h"

        registers x, 0, args, out, first, second, left, ptr
        registers w, 6, slope, one
        registers x, 8, scales, rest

        // Operand `v` gets the left % 16 bytes at `from`, of which there are mostly 8, from the last on.
.macro  load_last v, from
        movi    \v\().16b, #0
        add     ptr, \from, left
        ands    rest, left, #7
        b.eq    8f
7:      sub     ptr, ptr, #1
        ext     \v\().16b, \v\().16b, \v\().16b, #15
        ld1     {\v\().b}[0], [ptr]
        subs    rest, rest, #1
        b.ne    7b
8:      tbz     left, #3, 9f
        ext     \v\().16b, \v\().16b, \v\().16b, #8
        ld1     {\v\().d}[0], [\from]
9:
.endm

        // The next sixteen bytes of each operand, if there are as many.
.macro  load_next operands
        cmp     left, #16
        b.lt    9f
        ldr     q20, [first], #16
    .if \operands == 2
        ldr     q21, [second], #16
    .endif
9:
.endm

        // Sixteen bytes less their zero point, 9 bits, as floats that are 1.5 * 2^23 too large: added
        // to the bits of that one. On many cores this and fsub cost less than scvtf.
.macro  floats16 from, a, b, c, d, zero_point
        ssubl   \a\().8h, \from\().8b, \zero_point\().8b
        ssubl2  \c\().8h, \from\().16b, \zero_point\().16b
        saddw2  \b\().4s, v28.4s, \a\().8h
        saddw2  \d\().4s, v28.4s, \c\().8h
        saddw   \a\().4s, v28.4s, \a\().4h
        saddw   \c\().4s, v28.4s, \c\().4h
.endm

        // The operations, from v20 and v21 to sixteen floats in v16-v19.
.macro  requantize
        floats16 v20, v16, v17, v18, v19, v6
        each    fsub, v28.4s, v16.4s, v17.4s, v18.4s, v19.4s
        each    fmul, v3.s[0], v16.4s, v17.4s, v18.4s, v19.4s
.endm

.macro  sum
        floats16 v20, v16, v17, v18, v19, v6
        floats16 v21, v24, v25, v26, v27, v7
        each    fsub, v28.4s, v16.4s, v17.4s, v18.4s, v19.4s, v24.4s, v25.4s, v26.4s, v27.4s
        each    fmul, v3.s[0], v16.4s, v17.4s, v18.4s, v19.4s
        each    fmul, v3.s[1], v24.4s, v25.4s, v26.4s, v27.4s
        fadd    v16.4s, v16.4s, v24.4s
        fadd    v18.4s, v18.4s, v26.4s
        fadd    v17.4s, v17.4s, v25.4s
        fadd    v19.4s, v19.4s, v27.4s
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
        each    fmul, v3.s[0], v16.4s, v17.4s, v18.4s, v19.4s
        b       8f
7:      ld1     {v24.4s-v27.4s}, [scales], #64
        on16    fmul, v24.4s, v25.4s, v26.4s, v27.4s
8:
.endm

.macro  pointwise name, operands, operation
func    n8_\name
        // Scales, slope and zero points, and the limits, lie one after another.
        add     ptr, args, #N8_OFF_PW_A_SCALE
        ldr     q3, [ptr]
        ldr     q4, [ptr, #16]
        ldr     left, [args, #N8_OFF_PW_COUNT]
        movi    v28.4s, #0x4b, lsl #24
        ldp     out, first, [args, #N8_OFF_PW_OUT]
        dup     v6.16b, v3.b[12]
        mov     one, #0x3f800000
        dup     v0.8h, v4.h[2]
        ldr     slope, [args, #N8_OFF_PW_SLOPE]
        dup     v1.16b, v4.b[8]
    .if \operands == 2
        ldp     second, scales, [args, #N8_OFF_PW_B]
        dup     v7.16b, v4.b[0]
    .endif
        dup     v2.16b, v4.b[12]
        orr     v28.4s, #0x40, lsl #16
        subs    left, left, #16
        b.lo    3f

        ldr     q20, [first], #16
    .if \operands == 2
        ldr     q21, [second], #16
    .endif
2:      \operation
        cmp     slope, one
        b.eq    5f
        dup     v5.4s, slope
        leaky   v5, v22, v23, v16, v17, v18, v19
5:      round16 v16, v17, v18, v19, v0, v1, v2, load_next \operands
        tbnz    left, #63, 4f
        str     q16, [out], #16
        subs    left, left, #16
        b.hs    2b

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
