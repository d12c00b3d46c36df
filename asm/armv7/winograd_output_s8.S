// SPDX-License-Identifier: Apache-2.0
//
// The output of Winograd tiles, 4x4 pixels from 36 planes of accumulators: acc'' of (13), then
//
// v = fmul((float) acc'', multiplier[n])
// v = fadd(v, fmul((float)(residual - residual_zero_point), residual_scale)) if there is one  (6)
// leaky by slope[n] if there is one                                                         (5b)
// out = clamp(rne(v) + zero_point, lo, hi)                                                   (5)
//
//   void n8_winograd_output_s8_neon(const struct n8_winograd_output_args *args);
//
// Four channels at a time, and of these a tile at a time. What six rows of planes give does not fit
// the registers, so columns 0 and 2 of the output are computed first, then 1 and 3: the sums of the
// points 1 and -1 and of 2 and -2 are enough for the first two, their differences for the others.
// Factors are shifts, which are faster than products of 32 bits.
//
// Bounds: accumulators wrap; what they add up to, times 1/9 modulo 2^32, is 64 * acc'' and below
//   2^31, and vcvt divides it by 64 and rounds once, to even (7). After that nothing wraps: round16
//   in asm.h. NaN, of infinities that meet in (6) and (5b), becomes 0.
// Registers: below.
// Stack: 352 bytes: what it preserves, constants, the outputs of a tile with fewer than four
//   channels, and where they lie.
#include "asm.h"

        registers r, 0, args, bytes, place, residual, residual_place, sums, plane, low
        registers r, 8, far, tiles, channels, slope, ptr
two_planes .req r12

// On the stack: what .Lcolumns loads into q0-q5, and after that
#define MAGIC       48                          // q3 of round16
#define MULTIPLIERS 64
#define FACTORS     80
#define BIAS        96
#define BYTES       112
#define TABLE       176
#define LINK        240
#define OUT         244
#define PLACE       248
#define FRAME       252

multipliers .req q4
#define ninth           d10[0]                  // 1/9 modulo 2^32
#define residual_scale  d10[1]
residual_zp .req d11

// What columns 0 and 2 need of a row: of the first four planes the points 1, -1 and 0; with columns
// 1 and 3, 1, -1 and infinity; of the last two planes 2 and -2.
.macro  near02  a, b, t0
        vld1.32 {q\b}, [low :128], plane
        vld1.32 {q\t0}, [low :128], two_planes
        vld1.32 {q\a}, [low :128], plane
.endm

.macro  near13  a, b, t0
        vld1.32 {q\t0}, [low :128], plane
        vld1.32 {q\a}, [low :128], plane
        vld1.32 {q\b}, [low :128], two_planes
.endm

.macro  rest    t1, t2
        vld1.32 {q\t1}, [far :128], plane
        vld1.32 {q\t2}, [far :128], plane
.endm

// The two columns of a row, to a and b; columns 2 and 3, and lines, without a factor of 4.
.macro  pair02  a, b, t0, t1, t2
        vadd.i32 q\t0, q\b, q\t0
        vadd.i32 q\t1, q\t1, q\t2
        vshl.i32 q\t2, q\t0, #2
        vadd.i32 q\a, q\a, q\t1
        vsub.i32 q\b, q\t1, q\t0
        vsub.i32 q\a, q\a, q\t2
.endm

.macro  pair13  a, b, t0, t1, t2
        vsub.i32 q\t0, q\t0, q\a
        vsub.i32 q\a, q\t1, q\t2
        vadd.i32 q\a, q\a, q\a
        vadd.i32 q\b, q\b, q\a
        vsub.i32 q\b, q\b, q\t0
        vshl.i32 q\t0, q\t0, #2
        vsub.i32 q\a, q\a, q\t0
.endm

// Two columns of the six rows: q14, q0, q1, q8, q2, q10 and q15, q3, q4, q9, q5, q11. A row is
// loaded while the one before it is computed. The bias goes to the point (1, 1), in \first, which
// is part of every output.
.macro  rows    columns, first
        add     far, sums, plane, lsl #4
        mov     low, sums
        add     far, far, plane, lsl #3
        lsl     two_planes, plane, #1
        near\columns 14, 15, 6
        rest    7, 12
        vldr    d26, [sp, #BIAS]
        vldr    d27, [sp, #BIAS + 8]
        vadd.i32 q\first, q\first, q13
        near\columns 0, 3, 13
        rest    10, 11
        pair\columns 14, 15, 6, 7, 12
        near\columns 1, 4, 6
        rest    7, 12
        pair\columns 0, 3, 13, 10, 11
        near\columns 8, 9, 13
        rest    10, 11
        pair\columns 1, 4, 6, 7, 12
        near\columns 2, 5, 6
        rest    7, 12
        pair\columns 8, 9, 13, 10, 11
        near\columns 10, 11, 13
        pair\columns 2, 5, 6, 7, 12
        rest    6, 7
        pair\columns 10, 11, 13, 6, 7
.endm

// Two pixels and their residual, scaled.
.macro  add_residual a, b
        ldr     low, [residual_place], #8
        ldr     far, [residual_place], #8
        add     low, residual, low
        add     far, residual, far
        vld1.32 {d12[0]}, [low]
        vld1.32 {d12[1]}, [far]
        vsubl.s8 q6, d12, residual_zp
        vmovl.s16 q7, d13
        vmovl.s16 q6, d12
        to_float q7, q6
        each    vmul.f32, residual_scale, q7, q6
        vadd.f32 \b, \b, q7
        vadd.f32 \a, \a, q6
.endm

// A pixel of four channels, and on to the one after the next.
.macro  store   value
        ldr     low, [place], #8
        add     low, bytes, low
        vst1.32 {\value}, [low]
.endm

// Four pixels of two lines: requantizes 576 * acc'' and stores it. bits: of 64 * acc'', which b and d lack
// two more of.
.macro  pixels  bits, a, b, c, d
        vmul.i32 q8, \a, ninth
        vmul.i32 q9, \b, ninth
        vmul.i32 q10, \c, ninth
        vmul.i32 q11, \d, ninth
        each    vcvt.f32.s32, #\bits, q8, q10
        each    vcvt.f32.s32, #\bits - 2, q9, q11
        each    vmul.f32, multipliers, q8, q9, q10, q11
        orrs    low, residual, slope
        blne    .Ladjust
        round16
        store   d16[0]
        store   d16[1]
        store   d17[0]
        store   d17[1]
.endm

func    n8_winograd_output_s8_neon
        push_all FRAME
        load_limits N8_OFF_WO, ptr
        vstm    sp, {d0-d7}
        movw    low, #0x8e39
        movt    low, #0x38e3
        ldr     far, [args, #N8_OFF_WO_RESIDUAL_SCALE]
        ldr     ptr, [args, #N8_OFF_WO_RESIDUAL_ZERO_POINT]
        vmov    d0, low, far
        vdup.8  d1, ptr
        vstr    d0, [sp, #FACTORS]
        vstr    d1, [sp, #FACTORS + 8]
        ldr     plane, [args, #N8_OFF_WO_PLANE]
        ldr     channels, [args, #N8_OFF_WO_CHANNELS]

        // Four channels of all tiles.
.Lchannels:
        ldr     ptr, [args, #N8_OFF_WO_CHANNELS]
        ldr     bytes, [args, #N8_OFF_WO_OUT]
        ldr     place, [args, #N8_OFF_WO_PLACES]
        ldr     residual, [args, #N8_OFF_WO_RESIDUAL]
        ldr     residual_place, [args, #N8_OFF_WO_RESIDUAL_PLACES]
        ldr     sums, [args, #N8_OFF_WO_SUMS]
        ldr     tiles, [args, #N8_OFF_WO_TILES]
        ldr     low, [args, #N8_OFF_WO_BIAS]
        ldr     far, [args, #N8_OFF_WO_MULTIPLIER]
        ldr     slope, [args, #N8_OFF_WO_SLOPE]
        sub     ptr, ptr, channels              // how many are done
        add     bytes, bytes, ptr
        cmp     residual, #0
        addne   residual, residual, ptr
        add     sums, sums, ptr, lsl #2
        add     low, low, ptr, lsl #2
        add     far, far, ptr, lsl #2
        cmp     slope, #0
        addne   slope, slope, ptr, lsl #2
        vld1.32 {q0}, [low :128]
        vld1.32 {q1}, [far :128]
        vshl.i32 q2, q0, #5
        vshl.i32 q0, q0, #2
        vadd.i32 q0, q0, q2                     // 36 times the bias
        vstr    d0, [sp, #BIAS]
        vstr    d1, [sp, #BIAS + 8]
        vstr    d2, [sp, #MULTIPLIERS]
        vstr    d3, [sp, #MULTIPLIERS + 8]
        cmp     channels, #4
        bhs     .Ltile

        // Outputs of fewer than four go to the stack first.
        str     bytes, [sp, #OUT]
        str     place, [sp, #PLACE]
        add     bytes, sp, #BYTES
        add     place, sp, #TABLE
        mov     ptr, #0
1:      str     ptr, [place, ptr]
        add     ptr, ptr, #4
        cmp     ptr, #64
        bne     1b

.Ltile:
        rows    02, 15
        bl      .Lcolumns
        sub     place, place, #60               // to column 1
        sub     residual_place, residual_place, #60
        rows    13, 6
        bl      .Lcolumns
        ldr     ptr, [args, #N8_OFF_WO_TILE]
        sub     residual_place, residual_place, #4
        cmp     channels, #4
        add     sums, sums, ptr
        blo     2f
        sub     place, place, #4
        subs    tiles, tiles, #1
        bne     .Ltile
        subs    channels, channels, #4
        bne     .Lchannels
        b       .Lend

        // From the stack to their places.
2:      sub     place, place, #68
        ldr     low, [sp, #PLACE]
        mov     ptr, #0
3:      ldr     far, [sp, #OUT]
        ldr     lr, [low], #4
        add     far, far, lr
        ldr     lr, [bytes, ptr]
        tst     channels, #2
        beq     4f
        strh    lr, [far], #2
        lsr     lr, lr, #16
4:      tst     channels, #1
        strbne  lr, [far]
        add     ptr, ptr, #4
        cmp     ptr, #64
        bne     3b
        str     low, [sp, #PLACE]
        subs    tiles, tiles, #1
        bne     .Ltile

.Lend:
        pop_all FRAME

        // Two columns of six rows to two of four outputs, which are stored.
.Lcolumns:
        vadd.i32 q12, q14, q0
        vadd.i32 q13, q15, q3
        vsub.i32 q14, q14, q0
        vsub.i32 q15, q15, q3
        vadd.i32 q0, q2, q10
        vadd.i32 q3, q5, q11
        vsub.i32 q2, q2, q10
        vsub.i32 q5, q5, q11
        vadd.i32 q8, q8, q0
        vadd.i32 q9, q9, q3
        vadd.i32 q2, q2, q2
        vadd.i32 q5, q5, q5
        vshl.i32 q10, q12, #2
        vshl.i32 q11, q13, #2
        vsub.i32 q12, q0, q12                   // line 2
        vsub.i32 q13, q3, q13
        vsub.i32 q8, q8, q10                    // line 0
        vsub.i32 q9, q9, q11
        vadd.i32 q1, q1, q2
        vadd.i32 q4, q4, q5
        vshl.i32 q10, q14, #2
        vshl.i32 q11, q15, #2
        vsub.i32 q14, q1, q14                   // line 3
        vsub.i32 q15, q4, q15
        vsub.i32 q10, q2, q10                   // line 1
        vsub.i32 q11, q5, q11
        vldm    sp, {d0-d11}
        str     lr, [sp, #LINK]
        pixels  6, q8, q9, q10, q11
        pixels  4, q12, q13, q14, q15
        ldr     pc, [sp, #LINK]

        // Four pixels: the residual (6) and the slope (5b), if there are any.
.Ladjust:
        cmp     residual, #0
        beq     5f
        add_residual q8, q9
        add_residual q10, q11
5:      cmp     slope, #0
        beq     6f
        vld1.32 {q3}, [slope :128]
        leaky   q3, q6, q7, q8, q9, q10, q11
        vldr    d6, [sp, #MAGIC]
        vldr    d7, [sp, #MAGIC + 8]
6:      number  q6, q8, q9, q10, q11
        bx      lr
endfunc n8_winograd_output_s8_neon
