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

// Eight values at a time, then single ones in vectors of zeros.
//
// Bounds: 65536 values are below 2^31 in 32 bits of a sum; two squares are below 2^32. Reads
//   exactly `count` values.
// Registers: r0-r2 the arguments; q0 values, q1 sums of two squares, q2 sums of values, q3 of
//   squares.
// Stack: none.
        registers r, 0, sums, in, count

.macro  add_up
        vmull.s16 q1, d0, d0
        vpadal.s16 q2, q0
        vmlal.s16 q1, d1, d1
        vpadal.u32 q3, q1
.endm

func    n8_sums_s16_neon
        vmov.i8 q2, #0
        vmov.i8 q3, #0
        subs    count, count, #8
        blo     2f
1:      vld1.16 {d0-d1}, [in]!
        subs    count, count, #8
        add_up
        bhs     1b
2:      ands    count, count, #7
        beq     4f
        vmov.i8 q0, #0
3:      vld1.16 {d0[0]}, [in]!
        subs    count, count, #1
        add_up
        bne     3b
4:      vpaddl.s32 q2, q2
        vadd.i64 d4, d4, d5
        vadd.i64 d5, d6, d7
        vst1.64 {d4-d5}, [sums]
        bx      lr
endfunc n8_sums_s16_neon

        .unreq  in
        .unreq  count

// Eight values at a time; what is left is eight again, which end with the last. Fewer than eight go
// one by one.
//
// NEON takes numbers below 2^-126 for 0. Such a value counts as 0 here whatever is added to it, but
// such a slope does not where values are large: values are multiplied by 2^-64 and slopes, by VFP,
// by 2^64.
//
// Bounds: the caller has proved that in * factor and what is left of it fit int32; floats may become
//   infinite or NaN; `number` and `nearest` in asm.h. Reads and writes exactly `count` values.
// Registers: below; d0 rate and slope * 2^64, d1 2^-64 and factor, q1-q3 as `nearest` wants them,
//   q8-q9 values, q10-q11 gains, q14-q15 offsets, then scratch, q12 shift, q13 zero point (16 bits).
// Stack: 16 bytes, what it preserves.
        registers r, 0, args, out, in, gain, offset, left, back
slope   .req r12                // its bits
ptr     .req lr

        // q8 and q9, eight int32 values, to int16 in q8.
.macro  normalize8
        each    vmul.i32, d1[1], q8, q9
        each    vsub.i32, q12, q8, q9
        to_float q8, q9
        each    vmul.f32, d0[0], q8, q9
        vmul.f32 q8, q8, q10
        vmul.f32 q9, q9, q11
        vadd.f32 q8, q8, q14
        vadd.f32 q9, q9, q15
        cmp     slope, #0x3f800000              // 1
        beq     7f
    .irp    v, q8, q9
        vmul.f32 q14, \v, d1[0]
        vclt.f32 q15, \v, #0
        vmul.f32 q14, q14, d0[1]
        vbit    \v, q14, q15
    .endr
7:      number  q15, q8, q9
        nearest q8, q9
        vmovn.i32 d16, q8
        vmovn.i32 d17, q9
        vadd.i16 q8, q8, q13
.endm

func    n8_normalize_s16_neon
        save    r4, r5, r6, lr
        load_range N8_OFF_NO, out, ptr
        vdup.16 q13, out
        ldr     ptr, [args, #N8_OFF_NO_SHIFT]
        vdup.32 q12, ptr
        vldr    s0, [args, #N8_OFF_NO_RATE]
        vldr    s1, [args, #N8_OFF_NO_SLOPE]
        vmov    slope, s1
        mov     ptr, #0x5f000000                // 2^64
        orr     ptr, ptr, #0x800000
        vmov    s2, ptr
        vmul.f32 s1, s1, s2
        mov     ptr, #0x1f000000                // 2^-64
        orr     ptr, ptr, #0x800000
        vmov    s2, ptr
        vldr    s3, [args, #N8_OFF_NO_FACTOR]
        ldr     out, [args, #N8_OFF_NO_OUT]
        ldr     in, [args, #N8_OFF_NO_IN]
        ldr     gain, [args, #N8_OFF_NO_GAIN]
        ldr     offset, [args, #N8_OFF_NO_OFFSET]
        ldr     left, [args, #N8_OFF_NO_COUNT]
        subs    left, left, #8
        blo     3f

1:      vld1.16 {d18-d19}, [in]!
        vld1.32 {d20-d23}, [gain]!
        vmovl.s16 q8, d18
        vmovl.s16 q9, d19
        vld1.32 {d28-d31}, [offset]!
        normalize8
        vst1.16 {d16-d17}, [out]!
        subs    left, left, #8
        bhs     1b
        adds    back, left, #8
        beq     5f
        sub     back, back, #8                  // values, to begin 8 before the end
        add     in, in, back, lsl #1
        add     out, out, back, lsl #1
        add     gain, gain, back, lsl #2
        add     offset, offset, back, lsl #2
        mov     left, #0
        b       1b

3:      adds    left, left, #8
        beq     5f
4:      vld1.16 {d18[0]}, [in]!
        vld1.32 {d20[0]}, [gain]!
        vmovl.s16 q8, d18
        vld1.32 {d28[0]}, [offset]!
        normalize8
        vst1.16 {d16[0]}, [out]!
        subs    left, left, #1
        bne     4b
5:      restore r4, r5, r6, lr
        bx      lr
endfunc n8_normalize_s16_neon
