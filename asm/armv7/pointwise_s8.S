// SPDX-License-Identifier: Apache-2.0
//
// add_s8 (6):          v = fadd(fmul((float)(a[i] - a_zero_point), a_scale),
//                               fmul((float)(b[i] - b_zero_point), b_scale))
// multiply_s8 (16):    v = fmul((float)((a[i] - a_zero_point) * (b[i] - b_zero_point)), a_scale),
//                      or scales[i] in its place
// requantize_s8:       v = fmul((float)(a[i] - a_zero_point), a_scale)
//
// out[i] = clamp(rne(v < 0 ? fmul(v, slope) : v) + zero_point, lo, hi)
//
//   void n8_..._s8_neon(const struct n8_pointwise_args *args);
//
// and blend_s8 (17), eight bytes at a time, at the end.
//
// Sixteen bytes at a time, even and odd ones in registers of their own.
//
// Bounds: a difference of bytes fits int16, a product of two is below 2^17, and the floats of both
//   are exact; vmla rounds the product and then the sum.
// Registers: below; d0 scales of a and b, d1 slope, q1-q3 as `nearest` wants them, q4 zero point,
//   d10 that of a, d11 of b (8 bits); d24, d25 even and odd bytes of a, d26, d27 of b; v in q8, q9
//   of even bytes, in q10, q11 of odd ones; q12-q15 scratch.
// Stack: 44 bytes, what it preserves. Reads and writes exactly `count` bytes.
#include "asm.h"

        registers r, 0, args, out, first, second, ptr, scales
        // scales: of multiply_s8, or 0
left    .req r12                // bytes, less 16 of this round
slope   .req lr                 // its bits

// int16 to int32.
.macro  widen   low, high, lower, upper
        vmovl.s16 \high, \upper
        vmovl.s16 \low, \lower
.endm

// v of 16 values.
.macro  add_operands
        vsubl.s8 q8, d24, d10
        vsubl.s8 q10, d25, d10
        vsubl.s8 q12, d26, d11
        vsubl.s8 q14, d27, d11
        widen   q8, q9, d16, d17
        widen   q10, q11, d20, d21
        widen   q12, q13, d24, d25
        widen   q14, q15, d28, d29
        to_float q8, q9, q10, q11, q12, q13, q14, q15
        each    vmul.f32, d0[0], q8, q9, q10, q11
        vmla.f32 q8, q12, d0[1]
        vmla.f32 q9, q13, d0[1]
        vmla.f32 q10, q14, d0[1]
        vmla.f32 q11, q15, d0[1]
.endm

.macro  multiply_operands
        vsubl.s8 q14, d24, d10
        vsubl.s8 q15, d25, d10
        vsubl.s8 q12, d26, d11
        vsubl.s8 q13, d27, d11
        vmull.s16 q8, d28, d24
        vmull.s16 q9, d29, d25
        vmull.s16 q10, d30, d26
        vmull.s16 q11, d31, d27
        to_float q8, q9, q10, q11
        cmp     scales, #0
        bne     7f
        each    vmul.f32, d0[0], q8, q9, q10, q11
        b       8f
7:      vld2.32 {d24-d27}, [scales]!            // of even ones, and of odd ones
        vld2.32 {d28-d31}, [scales]!
        vmul.f32 q8, q8, q12
        vmul.f32 q10, q10, q13
        vmul.f32 q9, q9, q14
        vmul.f32 q11, q11, q15
8:
.endm

.macro  take_operand
        vsubl.s8 q8, d24, d10
        vsubl.s8 q10, d25, d10
        widen   q8, q9, d16, d17
        widen   q10, q11, d20, d21
        to_float q8, q9, q10, q11
        each    vmul.f32, d0[0], q8, q9, q10, q11
.endm

// Register \q, which is \low and \high, gets the left % 16 bytes at \from, the last ones first.
.macro  load_last q, low, high, from
        add     ptr, \from, left
        tst     left, #1
        beq     7f
        sub     ptr, ptr, #1
        vld1.8  {\low[0]}, [ptr]
7:      tst     left, #2
        beq     7f
        vext.8  \q, \q, \q, #14
        sub     ptr, ptr, #2
        vld1.16 {\low[0]}, [ptr]
7:      tst     left, #4
        beq     7f
        vext.8  \q, \q, \q, #12
        sub     ptr, ptr, #4
        vld1.32 {\low[0]}, [ptr]
7:      tst     left, #8
        beq     7f
        vmov    \high, \low
        vld1.8  {\low}, [\from]
7:      vuzp.8  \low, \high
.endm

.macro  pointwise name, compute, operands
func    n8_\name
        save    r4, r5, lr
        save_double d8, d9, d10, d11
        load_range N8_OFF_PW, out, ptr
        vdup.8  q4, out
        add     ptr, args, #N8_OFF_PW_A_SCALE   // the slope comes after both scales
        vld1.32 {d0-d1}, [ptr]
        ldr     slope, [args, #N8_OFF_PW_SLOPE]
        add     ptr, args, #N8_OFF_PW_A_ZERO_POINT
        vld1.8  {d10[]}, [ptr]
        ldr     out, [args, #N8_OFF_PW_OUT]
        ldr     first, [args, #N8_OFF_PW_A]
    .if \operands == 2
        add     ptr, args, #N8_OFF_PW_B_ZERO_POINT
        vld1.8  {d11[]}, [ptr]
        ldr     second, [args, #N8_OFF_PW_B]
        ldr     scales, [args, #N8_OFF_PW_SCALES]
    .endif
        ldr     left, [args, #N8_OFF_PW_COUNT]
        subs    left, left, #16
        blo     3f

1:      vld2.8  {d24-d25}, [first]!
    .if \operands == 2
        vld2.8  {d26-d27}, [second]!
    .endif
2:      \compute
        cmp     slope, #0x3f800000              // 1
        beq     5f
        leaky2  q8, q9, d1[0], q12, q13, q14, q15
        leaky2  q10, q11, d1[0], q12, q13, q14, q15

        // The low halves of even and odd ones are the values in order.
5:      nearest q8, q9, q10, q11
        vsli.32 q8, q10, #16
        vsli.32 q9, q11, #16
        vmovn.i16 d16, q8
        vmovn.i16 d17, q9
        vadd.i8 q8, q8, q4
        cmp     left, #0
        blt     4f
        vst1.8  {d16-d17}, [out]!
        subs    left, left, #16
        bhs     1b

        // The last 1 to 15 bytes go through the same steps; what lies after them is not touched.
3:      adds    left, left, #16
        beq     6f
        load_last q12, d24, d25, first
    .if \operands == 2
        load_last q13, d26, d27, second
    .endif
        sub     left, left, #16
        b       2b
4:      store_last out, left
6:      restore_double d8, d9, d10, d11
        pop     {r4, r5, pc}
endfunc n8_\name
.endm

pointwise add_s8_neon, add_operands, operands=2
pointwise multiply_s8_neon, multiply_operands, operands=2
pointwise requantize_s8_neon, take_operand, operands=1

// blend_s8: of four pixels a b c d,
//   above = fadd(fmul((float)(a - in_zero_point), left), fmul((float)(b - in_zero_point), right))
//   below, the same of c and d;  v = fadd(fmul(above, upper), fmul(below, lower))
//   out[i] = clamp(rne(fmul(v, scale)) + zero_point, lo, hi)
//
//   void n8_blend_s8_neon(const struct n8_blend_args *args);
//
// Bounds: weights are at most 1 and a scale at most 2^64, so what is so small that NEON takes it
//   for 0 would have been rounded to 0.
// Registers: d0 left, right; d1 upper, lower; q1-q3 as `nearest` wants them; d8 zero point of the
//   input, d9 of the output (8 bits); d10 scale; v in q8, q9.
// Stack: 48 bytes, what it preserves. Reads and writes exactly `channels` bytes.
        registers r, 5, below_left, below_right

func    n8_blend_s8_neon
        save    r4, r5, r6, lr
        save_double d8, d9, d10, d11
        load_range N8_OFF_BL, out, ptr
        vdup.8  d9, out
        add     ptr, args, #N8_OFF_BL_LEFT      // the other weights and the scale come after it
        vld1.32 {d0-d1}, [ptr]!
        vld1.32 {d10[0]}, [ptr]
        add     ptr, args, #N8_OFF_BL_IN_ZERO_POINT
        vld1.8  {d8[]}, [ptr]
        ldr     out, [args, #N8_OFF_BL_OUT]
        ldr     left, [args, #N8_OFF_BL_CHANNELS]
        ldr     ptr, [args, #N8_OFF_BL_IN]
        ldr     first, [ptr]
        ldr     second, [ptr, #4]
        ldr     below_left, [ptr, #8]
        ldr     below_right, [ptr, #12]

1:      vld1.8  {d24}, [first]!
        vld1.8  {d25}, [second]!
        vld1.8  {d26}, [below_left]!
        vld1.8  {d27}, [below_right]!
        subs    left, left, #8
        vsubl.s8 q8, d24, d8
        vsubl.s8 q10, d25, d8
        vsubl.s8 q14, d27, d8
        vsubl.s8 q12, d26, d8
        widen   q8, q9, d16, d17
        widen   q10, q11, d20, d21
        widen   q12, q13, d24, d25
        widen   q14, q15, d28, d29
        to_float q8, q9, q10, q11, q12, q13, q14, q15
        each    vmul.f32, d0[0], q8, q9, q12, q13
        vmla.f32 q8, q10, d0[1]
        vmla.f32 q9, q11, d0[1]
        vmla.f32 q12, q14, d0[1]
        vmla.f32 q13, q15, d0[1]
        each    vmul.f32, d1[0], q8, q9
        vmla.f32 q8, q12, d1[1]
        vmla.f32 q9, q13, d1[1]
        each    vmul.f32, d10[0], q8, q9
        nearest q8, q9
        vmovn.i32 d16, q8
        vmovn.i32 d17, q9
        vmovn.i16 d16, q8
        vadd.i8 d16, d16, d9
        vst1.8  {d16}, [out]!
        bne     1b
        restore_double d8, d9, d10, d11
        pop     {r4-r6, pc}
endfunc n8_blend_s8_neon
